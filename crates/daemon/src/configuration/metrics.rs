//! Where metrics are served, and to whom.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use installation::secret::{self, SecretReaders};

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
    pub dashboard: Dashboard,
}

/// The page for people, which is served beside metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dashboard {
    pub enabled: bool,
    /// The file with the secret of those who may change something. `None`: nobody may.
    pub admin_token: Option<PathBuf>,
}

impl Default for Dashboard {
    fn default() -> Dashboard {
        Dashboard { enabled: true, admin_token: None }
    }
}

impl Dashboard {
    /// What is wrong with the file of a secret: nobody but the daemon's user, or root, may have written it or read it.
    pub(super) fn mistrust(path: &Path) -> Option<String> {
        match fs::metadata(path) {
            Ok(facts) => {
                let reason = secret::distrust(&facts, SecretReaders::Owner)?;
                Some(format!("{} {reason}", path.display()))
            }
            Err(error) => Some(format!("{} cannot be looked at ({error})", path.display())),
        }
    }
}

impl Metrics {
    /// What is wrong with the file of a key or of passwords that is there. One that is not may still come; who serves looks again.
    pub(super) fn mistrust(path: &Path) -> Option<String> {
        let reason = secret::distrust(&fs::metadata(path).ok()?, SecretReaders::OwnerAndGroup)?;
        Some(format!("{} {reason}", path.display()))
    }

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
    fn there_is_a_dashboard_unless_somebody_says_no_and_its_secret_is_one() {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(read(Scope::Machine, "").unwrap().dashboard, Dashboard::default());
        assert!(!read(Scope::Machine, "[dashboard]\nenabled = false").unwrap().dashboard.enabled);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "secret").unwrap();
        let named = |path: &Path| {
            let text = format!("[dashboard]\nadmin_token_file = \"{}\"", path.display());
            read(Scope::Machine, &text).map(|metrics| metrics.dashboard.admin_token)
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(named(&path), Ok(Some(path.clone())));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let open = named(&path).unwrap_err();
        assert!(open.starts_with("3: ") && open.contains("is open to others"), "{open}");
        assert!(named(folder.path()).unwrap_err().contains("is no file"));
        assert!(named(&folder.path().join("none")).unwrap_err().contains("cannot be looked at"));
    }

    #[test]
    fn keys_and_passwords_that_others_can_read_are_mistakes() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, "secret").unwrap();
        let file = path.display();
        for text in [
            format!("[metrics]\nbasic_auth_file = \"{file}\""),
            format!("[metrics]\ntls_key = \"{file}\"\ntls_certificate = \"/c\""),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            assert!(read(Scope::Machine, &text).is_ok(), "{text}");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let open = read(Scope::Machine, &text).unwrap_err();
            assert!(open.starts_with("3: ") && open.contains("chmod 600"), "{open}");
        }
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
