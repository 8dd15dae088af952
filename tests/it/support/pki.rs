//! Certificates and keys of one control plane, made for it and gone with it. P-256 everywhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PublicKeyData as _,
};

/// What stands in the folder, and what is needed without files.
pub(crate) struct Pki {
    folder: PathBuf,
    /// The authority's certificate, PEM in base64: for kubeconfigs.
    pub(crate) authority_data: String,
    /// The serving certificate of all servers on 127.0.0.1, DER.
    pub(crate) server_certificate: Vec<u8>,
    /// Its key, PKCS#8 in DER.
    pub(crate) server_key: Vec<u8>,
}

impl Pki {
    /// Makes all and writes `ca.crt`, `server.crt`, `server.key`, `kubelet-client.crt`, `kubelet-client.key`, `sa.key`, `sa.pub`.
    pub(crate) fn make(folder: &Path) -> io::Result<Self> {
        fs::create_dir(folder)?;
        let mut params = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
        params.distinguished_name = named("test-ca", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, key()?).map_err(io::Error::other)?;
        let authority_pem = pem("CERTIFICATE", authority.der());
        fs::write(folder.join("ca.crt"), &authority_pem)?;

        let names = ["localhost", "kubernetes.default.svc", "127.0.0.1"].map(str::to_owned).to_vec();
        let server = signed(&authority, named("kube-apiserver", None), names, ExtendedKeyUsagePurpose::ServerAuth)?;
        let masters = named("kube-apiserver-kubelet-client", Some("system:masters"));
        let client = signed(&authority, masters, Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)?;
        for (name, (certificate, key)) in [("server", &server), ("kubelet-client", &client)] {
            fs::write(folder.join(name).with_extension("crt"), pem("CERTIFICATE", certificate))?;
            fs::write(folder.join(name).with_extension("key"), pem("PRIVATE KEY", key))?;
        }
        let accounts = key()?;
        fs::write(folder.join("sa.key"), pem("PRIVATE KEY", accounts.serialized_der()))?;
        fs::write(folder.join("sa.pub"), pem("PUBLIC KEY", &accounts.subject_public_key_info()))?;
        let (server_certificate, server_key) = server;
        Ok(Self { folder: folder.to_owned(), authority_data: STANDARD.encode(authority_pem), server_certificate, server_key })
    }

    /// The path of one of its files.
    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

fn key() -> io::Result<KeyPair> {
    KeyPair::generate().map_err(io::Error::other)
}

fn named(common: &str, group: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(group) = group {
        name.push(DnType::OrganizationName, group);
    }
    name
}

/// A certificate and its key, both DER.
fn signed(
    authority: &CertifiedIssuer<'_, KeyPair>,
    subject: DistinguishedName,
    names: Vec<String>,
    usage: ExtendedKeyUsagePurpose,
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
    params.distinguished_name = subject;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    let key = key()?;
    let certificate = params.signed_by(&key, authority).map_err(io::Error::other)?;
    Ok((certificate.der().to_vec(), key.serialize_der()))
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("base64 is ASCII")).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
