//! TLS, where a certificate is named.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Error;
use installation::secret::{self, SecretReaders};

/// A certificate and its key, ready to be used.
pub fn read(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Error> {
    let wrong = |path: &Path, reason: String| Error::Tls { path: path.to_owned(), reason };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(certificate).and_then(|certificates| certificates.collect());
    let chain = chain.map_err(|error| wrong(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "there is no certificate in it".to_owned()));
    }
    let private = secret::read(key, SecretReaders::OwnerAndGroup)?;
    let private = PrivateKeyDer::from_pem_slice(&private).map_err(|error| wrong(key, error.to_string()))?;
    // Named here: another part of the program must not decide it for us.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, private));
    config.map(Arc::new).map_err(|error| wrong(certificate, error.to_string()))
}
