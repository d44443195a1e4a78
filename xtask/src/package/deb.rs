//! The Debian package: the tree below `/usr`, the units of the service, its user and its configuration.
//!
//! `dpkg-deb` makes it of a folder. A tool of cargo's (cargo-deb) would do the same from a table in a manifest; it would have to be
//! installed, would strip and date things by rules of its own, and know nothing of the wheel, while what is to be said here
//! is a list of paths and a dozen lines of `control`.
//!
//! Installing it starts nothing: `ebb run` works at once, with a daemon of the user's own, and whoever wants the machine's enables
//! it. An upgrade restarts nothing either, and a daemon that runs goes on as it was until somebody restarts it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use flate2::{Compression, GzBuilder};

use super::Product;
use super::elf::Needs;
use super::stage::{Entry, Stage};

/// Files of the machine, outside the prefix.
const OUTSIDE: [(&str, &str); 5] = [
    ("etc/ebb/ebb.toml", include_str!("../../../deploy/ebb.toml")),
    ("lib/systemd/system/ebb.service", include_str!("../../../deploy/systemd/ebb.service")),
    ("lib/systemd/system/ebb.socket", include_str!("../../../deploy/systemd/ebb.socket")),
    ("lib/systemd/system/ebb-admin.socket", include_str!("../../../deploy/systemd/ebb-admin.socket")),
    ("usr/lib/sysusers.d/ebb.conf", include_str!("../../../deploy/sysusers/ebb.conf")),
];

/// What `dpkg` runs, and when.
const SCRIPTS: [(&str, &str); 3] = [
    ("postinst", include_str!("../../../deploy/debian/postinst")),
    ("prerm", include_str!("../../../deploy/debian/prerm")),
    ("postrm", include_str!("../../../deploy/debian/postrm")),
];

const COPYRIGHT: &str = include_str!("../../../deploy/debian/copyright");

pub fn make(product: &Product, stage: &Stage, out: &Path) -> Result<PathBuf> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("ebb");
    let mut size = 0;
    for entry in &stage.entries {
        let (path, bytes) = as_debian_has_it(entry)?;
        size += bytes.len().div_ceil(1024);
        put(&root.join("usr").join(path), &bytes, entry.executable)?;
    }
    for (path, text) in OUTSIDE {
        put(&root.join(path), text.as_bytes(), false)?;
    }
    put(&root.join("usr/share/doc/ebb/copyright"), COPYRIGHT.as_bytes(), false)?;
    put(&root.join("DEBIAN/control"), control(product, size).as_bytes(), false)?;
    put(&root.join("DEBIAN/conffiles"), b"/etc/ebb/ebb.toml\n", false)?;
    for (name, script) in SCRIPTS {
        put(&root.join("DEBIAN").join(name), script.as_bytes(), true)?;
    }
    let package = out.join(format!("ebb_{}_{}.deb", product.version, architecture()?));
    let mut command = Command::new("dpkg-deb");
    command.arg("--root-owner-group").stdout(Stdio::null());
    if !product.small {
        command.args(["-Zgzip", "-z1"]);
    }
    // Owners, order and times are the same whoever makes it.
    command.env("SOURCE_DATE_EPOCH", product.time.to_string());
    match command.arg("--build").arg(&root).arg(&package).status() {
        Ok(status) if status.success() => Ok(package),
        Ok(status) => bail!("dpkg-deb failed: {status}"),
        Err(error) => {
            Err(error).context("cannot run dpkg-deb, which makes the package; or ask for --wheel only")
        }
    }
}

/// Manual pages packed, and completions where Debian's shells look.
fn as_debian_has_it(entry: &Entry) -> Result<(String, Vec<u8>)> {
    if entry.path.starts_with("share/man/") {
        let mut packer = GzBuilder::new().write(Vec::new(), Compression::best());
        packer.write_all(&entry.bytes)?;
        return Ok((format!("{}.gz", entry.path), packer.finish()?));
    }
    let path = entry.path.replace("share/zsh/site-functions/", "share/zsh/vendor-completions/");
    Ok((path, entry.bytes.clone()))
}

fn put(path: &Path, bytes: &[u8], executable: bool) -> Result<()> {
    let folder = path.parent().context("a file lies in a folder")?;
    // Whatever the mask of whoever builds: everybody may read what is installed.
    for folder in folder.ancestors().take_while(|folder| !folder.exists()).collect::<Vec<_>>().iter().rev() {
        fs::create_dir(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    let mode = if executable { 0o755 } else { 0o644 };
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

fn control(product: &Product, kibibytes: usize) -> String {
    let Product { version, needs, .. } = product;
    let architecture = architecture().unwrap_or("any");
    let depends = depends(*needs);
    format!(
        "Package: ebb\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: The ebb project <ebb@localhost>\n\
         Section: utils\n\
         Priority: optional\n\
         Installed-Size: {kibibytes}\n\
         Depends: {depends}\n\
         Recommends: systemd\n\
         Description: shares an NVIDIA GPU between latency-critical and best-effort work\n \
         Best-effort GPU work leaves within microseconds when latency-critical work\n \
         arrives, and flows back into every gap. No application, framework, library or\n \
         driver is changed: `ebb run -- python train.py` is all there is to type.\n \
         .\n \
         This package has the command, the library that stands in front of the driver,\n \
         a GPU in software to try it without one, and the units of a daemon for all\n \
         users of the machine, which is not started unless somebody enables it.\n"
    )
}

/// The package of the compiler's library had another name in Debian 10, whose libc is the oldest that is aimed at.
fn depends(needs: Needs) -> String {
    let libgcc = if needs.libgcc { ", libgcc-s1 | libgcc1" } else { "" };
    format!("libc6 (>= {}){libgcc}", needs.glibc)
}

/// What Debian calls this machine's architecture.
fn architecture() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("there is no Debian package for {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_packed_without_a_time() {
        let entry =
            Entry { path: "share/man/man1/ebb.1".to_owned(), bytes: b".TH".to_vec(), executable: false };
        let (path, bytes) = as_debian_has_it(&entry).unwrap();
        assert_eq!((path.as_str(), &bytes[..2]), ("share/man/man1/ebb.1.gz", &[0x1f, 0x8b][..]));
        assert_eq!(bytes[4..8], [0; 4]);
    }

    #[test]
    fn folders_are_open_to_everybody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c");
        put(&path, b"x", true).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o755, 0o755));
    }

    #[test]
    fn a_package_depends_on_what_was_found() {
        let needs = Needs { glibc: super::super::elf::Version(2, 28), libgcc: false };
        let text = control(&Product { version: "1.2.3".to_owned(), time: 0, needs, small: true }, 7);
        assert!(text.contains("\nDepends: libc6 (>= 2.28)\n") && text.contains("\nVersion: 1.2.3\n"));
        assert_eq!(depends(Needs { libgcc: true, ..needs }), "libc6 (>= 2.28), libgcc-s1 | libgcc1");
        assert!(
            text.lines()
                .skip_while(|line| !line.starts_with("Desc"))
                .skip(1)
                .all(|line| line.starts_with(' '))
        );
    }
}
