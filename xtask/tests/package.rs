//! The packages, installed as somebody would install them. They are made of what the other tests have built.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A folder with the packages, made once.
fn packages() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // What is static is never dropped: not a folder that should go.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
        let _ = fs::remove_dir_all(&folder);
        let kinds: &[&str] = if is_here("dpkg-deb") { &["--deb", "--wheel"] } else { &["--wheel"] };
        let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
        xtask.args(["package", "--profile", "dev", "--out"]).arg(&folder).args(kinds);
        run(&mut xtask);
        folder
    })
}

fn package(extension: &str) -> PathBuf {
    let files = fs::read_dir(packages()).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|found| found == extension)).unwrap()
}

fn is_here(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// What a command that must succeed printed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let Output { status, stdout, stderr } = output;
    assert!(status.success(), "{command:?}: {status}\n{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// An `ebb` that is installed, without anything of this machine's in its environment.
fn ebb(path: &Path, folder: &Path) -> Command {
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("EBB_") || name == "LD_PRELOAD") {
            command.env_remove(name);
        }
    }
    command.env("EBB_RUNTIME_DIR", folder).env("XDG_CONFIG_HOME", folder).env("XDG_CACHE_HOME", folder);
    command.env("EBB_DAEMON_IDLE", "1");
    command
}

/// A folder that only its owner may enter, as a runtime folder must be.
fn private_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

/// That `ebb` runs from where it was put, with its libraries.
fn expect_to_run(path: &Path) {
    let folder = private_folder();
    let version = concat!("ebb ", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(ebb(path, folder.path()).arg("version")).trim(), version);
    let report = folder.path().join("report.json");
    let option = format!("--report=json:{}", report.display());
    let tenant =
        ["tenant", "--driver", "libcuda.so.1", "--class", "best-effort", "--seconds", "1", "--seed=1"];
    let mut command = ebb(path, folder.path());
    // Told to begin and to end by what it reads, of which there is nothing.
    command.args(["run", "--device", "soft", "--quiet", &option, "--"]).arg(path).args(tenant);
    run(command.stdin(std::process::Stdio::null()));
    let report = fs::read_to_string(report).unwrap();
    assert!(report.contains("\"cuda_used\":true"), "{report}");
    assert!(report.contains("lib/ebb/softcuda/libcuda.so.1"), "{report}");
}

#[test]
fn the_debian_package_installs_into_an_empty_system() {
    if !is_here("dpkg-deb") || !is_here("dpkg") {
        println!("skipped: there is no dpkg");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let is_root = run(Command::new("id").arg("-u")).trim() == "0";
    if is_root {
        for folder in ["var/lib/dpkg/updates", "var/lib/dpkg/info", "var/log", "etc"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("var/lib/dpkg/status"), "").unwrap();
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.path().display()));
        // What it depends on is in this machine's system, not in that one.
        dpkg.args(["--force-script-chrootless", "--force-depends", "--install"]).arg(package("deb"));
        run(&mut dpkg);
    } else {
        println!("not root: unpacked, its scripts not run");
        run(Command::new("dpkg-deb").arg("--extract").arg(package("deb")).arg(root.path()));
    }
    let path = |path: &str| root.path().join(path);
    for file in [
        "usr/bin/ebb",
        "usr/lib/ebb/shim/libcuda.so.1",
        "usr/lib/ebb/nvml/libnvidia-ml.so.1",
        "usr/lib/ebb/nvml/libnvidia-ml.so",
        "usr/lib/ebb/softcuda/libcuda.so.1",
        "usr/lib/sysusers.d/ebb.conf",
        "lib/systemd/system/ebb.service",
        "lib/systemd/system/ebb.socket",
        "lib/systemd/system/ebb-admin.socket",
        "etc/ebb/ebb.toml",
        "usr/share/man/man1/ebb.1.gz",
        "usr/share/man/man1/ebb-support-bundle.1.gz",
        "usr/share/bash-completion/completions/ebb",
        "usr/share/zsh/vendor-completions/_ebb",
        "usr/share/fish/vendor_completions.d/ebb.fish",
        "usr/share/doc/ebb/copyright",
        "usr/share/doc/ebb/THIRD-PARTY",
        "usr/share/doc/ebb/sbom.cdx.json",
        "usr/share/doc/ebb/docs/install.md",
        "usr/share/doc/ebb/examples/shared.conf",
    ] {
        assert!(path(file).is_file(), "{file}");
    }
    if is_root && is_here("systemd-sysusers") {
        assert!(fs::read_to_string(path("etc/passwd")).unwrap().contains("ebb:"), "the daemon has its user");
    }
    expect_to_run(&path("usr/bin/ebb"));
    let field = |name: &str| run(Command::new("dpkg-deb").arg("--field").arg(package("deb")).arg(name));
    assert!(field("Depends").starts_with("libc6 (>= 2."));
    let list = run(Command::new("dpkg-deb").arg("--contents").arg(package("deb")));
    assert!(list.lines().all(|line| line.contains(" root/root ")), "{list}");
}

#[test]
fn the_machines_configuration_is_one_that_the_daemon_reads() {
    if !is_here("dpkg-deb") {
        println!("skipped: there is no dpkg");
        return;
    }
    let root = private_folder();
    run(Command::new("dpkg-deb").arg("--extract").arg(package("deb")).arg(root.path()));
    let folder = private_folder();
    let file = root.path().join("etc/ebb/ebb.toml");
    let mut daemon = ebb(&root.path().join("usr/bin/ebb"), folder.path());
    // It ends by itself, since nobody comes.
    run(daemon.args(["daemon", "--idle", "0", "--config"]).arg(&file));
    // And so does what it says could be set.
    let text = fs::read_to_string(&file).unwrap();
    let all: String = text
        .lines()
        .skip(3)
        .filter(|line| !line.contains("group =") && !line.contains("ceiling"))
        .map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line)))
        .collect();
    let all = all.split("class =").next().unwrap().to_owned();
    let wanted = ["domain =", "[policy]", "quiet =", "[token]", "grace ="];
    assert!(wanted.iter().all(|key| all.contains(key)), "{all}");
    fs::write(&file, all).unwrap();
    let mut daemon = ebb(&root.path().join("usr/bin/ebb"), folder.path());
    run(daemon.args(["daemon", "--idle", "0", "--config"]).arg(&file));
}

#[test]
fn the_units_are_units() {
    if !is_here("systemd-analyze") {
        println!("skipped: there is no systemd-analyze");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/systemd");
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no"]);
    for unit in ["ebb.service", "ebb.socket", "ebb-admin.socket"] {
        // It looks whether the program is there, which on this machine lies elsewhere.
        let text = fs::read_to_string(units.join(unit)).unwrap();
        let text = text.replace("/usr/bin/ebb", env!("CARGO_BIN_EXE_xtask"));
        let path = folder.path().join(unit);
        fs::write(&path, text).unwrap();
        command.arg(path);
    }
    let drop_in = folder.path().join("ebb.service.d");
    fs::create_dir(&drop_in).unwrap();
    fs::copy(units.join("shared.conf"), drop_in.join("shared.conf")).unwrap();
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<_> = said.lines().filter(|line| line.contains("ebb")).collect();
    assert_eq!(ours, Vec::<&str>::new());
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_wheel_installs_into_an_environment_without_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let environment = folder.path().join("venv");
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(&environment);
    if !venv.output().is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no python3 that can make an environment");
        return;
    }
    let python = environment.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--no-index", "--disable-pip-version-check", "--quiet"]);
    run(pip.arg(package("whl")));
    for file in ["bin/ebb", "lib/ebb/shim/libcuda.so.1", "share/man/man1/ebb.1", "share/doc/ebb/README.md"] {
        assert!(environment.join(file).is_file(), "{file}");
    }
    expect_to_run(&environment.join("bin/ebb"));
    let runtime = private_folder();
    let mut demo = ebb(&environment.join("bin/ebb"), runtime.path());
    let table = run(demo.args(["demo", "--seconds", "0.5", "-o", "json"]));
    assert!(table.contains('{'), "{table}");
    let words = "import ebb\nwith ebb.request() as marked:\n    print(ebb.attached(), marked)";
    assert_eq!(run(Command::new(&python).args(["-c", words])).trim(), "False False");
    let mut attached = ebb(&environment.join("bin/ebb"), runtime.path());
    attached.args(["run", "--device", "soft", "--quiet", "--"]).arg(&python).args(["-c", words]);
    assert_eq!(run(&mut attached).trim(), "True False", "there is no context yet");
    run(Command::new(&python).args(["-m", "pip", "check"]));
}

#[test]
fn sums_and_bill_are_beside_the_packages() {
    let mut check = Command::new("sha256sum");
    run(check.args(["--check", "--quiet", "SHA256SUMS"]).current_dir(packages()));
    let sums = fs::read_to_string(packages().join("SHA256SUMS")).unwrap();
    assert!(sums.contains(".whl\n") && sums.contains(".cdx.json\n"));
    let bill: serde_json::Value = serde_json::from_slice(&fs::read(package("json")).unwrap()).unwrap();
    let parts = bill["components"].as_array().unwrap();
    let has = |name: &str| parts.iter().any(|part| part["name"] == name);
    assert!(has("cli") && has("clap") && has("rustix") && !has("tempfile") && !has("bindgen"));
}

#[test]
fn a_package_made_again_is_the_same() {
    if !is_here("dpkg-deb") {
        println!("skipped: there is no dpkg");
        return;
    }
    let again = tempfile::tempdir().unwrap();
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    run(xtask.args(["package", "--profile", "dev", "--out"]).arg(again.path()));
    let first = packages();
    let sums = |folder: &Path| fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(first), sums(again.path()));
}
