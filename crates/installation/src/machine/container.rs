//! Are we in a container?

use std::fmt;
use std::fs;

use super::Machine;

/// What a container shows of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    Kubernetes,
    Docker,
    Podman,
    /// By the control group of the first process.
    Other,
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Container::Kubernetes => "Kubernetes",
            Container::Docker => "Docker",
            Container::Podman => "Podman",
            Container::Other => "a container",
        })
    }
}

impl Machine {
    /// `kubernetes`: whether `KUBERNETES_SERVICE_HOST` is set, as it is in every pod.
    pub fn container(&self, kubernetes: bool) -> Option<Container> {
        let exists = |path| self.place(path).exists();
        let groups = fs::read_to_string(self.place("/proc/1/cgroup")).unwrap_or_default();
        let hint = |word| groups.contains(word);
        if kubernetes || hint("kubepods") {
            Some(Container::Kubernetes)
        } else if exists("/.dockerenv") || hint("/docker") {
            Some(Container::Docker)
        } else if exists("/run/.containerenv") || hint("libpod") {
            Some(Container::Podman)
        } else if hint("/lxc") || hint("containerd") {
            Some(Container::Other)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::made;
    use super::*;

    #[test]
    fn containers_are_known_by_what_they_leave_lying_about() {
        let seen = |path, content| made(&[(path, content)]).1.container(false);
        assert_eq!(seen("/.dockerenv", ""), Some(Container::Docker));
        assert_eq!(seen("/run/.containerenv", ""), Some(Container::Podman));
        assert_eq!(seen("/proc/1/cgroup", "0::/kubepods.slice/pod1\n"), Some(Container::Kubernetes));
        assert_eq!(seen("/proc/1/cgroup", "1:name=systemd:/docker/5f3c\n"), Some(Container::Docker));
        assert_eq!(seen("/proc/1/cgroup", "1:cpu:/lxc/one\n"), Some(Container::Other));
        assert_eq!(seen("/proc/1/cgroup", "0::/init.scope\n"), None);
        assert_eq!(made(&[]).1.container(true), Some(Container::Kubernetes));
    }
}
