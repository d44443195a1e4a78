//! Where metrics are served, and to whom.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::Scope;

/// Where a machine's daemon serves them, where nobody says otherwise. Other exporters of GPU figures have other ports.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9463);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// `None`: nowhere.
    pub listen: Option<SocketAddr>,
    /// The files of a certificate and of its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The file of those who may read, and their passwords.
    pub basic_auth: Option<PathBuf>,
}

impl Metrics {
    /// A machine is watched by whoever runs it; a daemon that a user has for an hour is not.
    pub(super) fn plain(scope: Scope) -> Metrics {
        Metrics { listen: (scope == Scope::Machine).then_some(USUAL), ..Metrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Configuration;

    fn read(scope: Scope, text: &str) -> Result<Metrics, String> {
        let read = Configuration::parse(&format!("schema_version = 1\n{text}"), scope, 0);
        read.map(|configuration| configuration.metrics)
            .map_err(|wrong| format!("{}: {}", wrong[0].line.unwrap(), wrong[0].message))
    }

    #[test]
    fn a_machines_daemon_serves_on_this_machine_and_a_users_nowhere() {
        assert_eq!(read(Scope::Machine, "").unwrap().listen.unwrap().to_string(), "127.0.0.1:9463");
        assert_eq!(read(Scope::User, "").unwrap().listen, None);
        assert_eq!(read(Scope::Machine, "[metrics]\nlisten = \"off\"").unwrap().listen, None);
        let user = read(Scope::User, "[metrics]\nlisten = \"[::1]:80\"").unwrap();
        assert_eq!(user.listen.unwrap().to_string(), "[::1]:80");
    }

    #[test]
    fn files_have_full_paths_and_a_key_its_certificate() {
        let text = "[metrics]\ntls_certificate = \"/c\"\ntls_key = \"/k\"\nbasic_auth_file = \"/b\"";
        let all = read(Scope::Machine, text).unwrap();
        assert_eq!((all.tls, all.basic_auth), (Some(("/c".into(), "/k".into())), Some("/b".into())));
        let wrong = |text| read(Scope::Machine, text).unwrap_err();
        assert_eq!(wrong("[metrics]\ntls_key = \"/k\""), "3: tls_certificate and tls_key go together");
        assert_eq!(wrong("[metrics]\nbasic_auth_file = \"b\""), "3: b is no full path");
        let listen = wrong("[metrics]\nlisten = \"localhost\"");
        assert!(listen.starts_with("3: `localhost` cannot be listened on"), "{listen}");
        assert!(wrong("[metrics]\nport = 1").contains("unknown key `metrics.port`"));
    }
}
