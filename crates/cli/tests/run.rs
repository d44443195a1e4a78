//! `ebb run` as a user types it, with small commands.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::json::{self, Value};
use common::{errors, private_folder, text};
use lab::REQUEST_LAUNCHES;

/// Tenancy is tested in `tenancy.rs`.
const SOFT: [&str; 4] = ["run", "--device", "soft", "--no-daemon"];

fn soft(runtime: &Path) -> Command {
    common::products();
    let mut command = common::ebb(runtime);
    command.args(SOFT);
    command
}

/// Runs a shell under ebb.
fn shell(runtime: &Path, options: &[&str], script: &str) -> Output {
    soft(runtime).args(options).args(["--", "/bin/sh", "-c", script]).output().unwrap()
}

/// The words that make a tenant which does a few requests of five launches each, under the driver's plain name.
fn tenant(class: &str, seconds: &str) -> Vec<String> {
    let ebb = env!("CARGO_BIN_EXE_ebb");
    let words =
        [ebb, "tenant", "--driver", "libcuda.so.1", "--class", class, "--seconds", seconds, "--seed", "1"];
    words.map(str::to_owned).to_vec()
}

fn report_in(file: &Path) -> Value {
    json::parse(&fs::read_to_string(file).unwrap())
}

#[test]
fn the_status_is_that_of_the_command() {
    let runtime = private_folder();
    for options in [&[][..], &["--report"]] {
        for status in [0, 7, 125, 255] {
            let output = shell(runtime.path(), options, &format!("exit {status}"));
            assert_eq!(output.status.code(), Some(status), "{options:?}");
        }
    }
}

#[test]
fn a_signal_is_told_as_shells_tell_it() {
    let runtime = private_folder();
    for signal in [9, 15, 10] {
        let script = format!("kill -{signal} $$");
        let reported = shell(runtime.path(), &["--report"], &script);
        assert_eq!(reported.status.code(), Some(128 + signal));
        assert!(errors(&reported).contains(&format!("ended by signal {signal}")), "{}", errors(&reported));
        // Without a report there is nobody between.
        assert_eq!(shell(runtime.path(), &[], &script).status.signal(), Some(signal));
    }
}

#[test]
fn without_a_report_ebb_becomes_the_command() {
    let runtime = private_folder();
    let mut command = soft(runtime.path());
    let child = command.args(["--", "/bin/sh", "-c", "echo $$"]).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    assert_eq!(text(&child.wait_with_output().unwrap()).trim(), pid.to_string());
    assert_eq!(fs::read_dir(runtime.path()).unwrap().count(), 0, "nothing was needed in the runtime folder");
}

#[test]
fn streams_and_scripts_pass_through_both_ways() {
    let runtime = private_folder();
    let script = runtime.path().join("no shebang");
    fs::write(&script, "read line; echo \"$line $1\"").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for options in [&[][..], &["--report"]] {
        let mut command = soft(runtime.path());
        command.args(options).arg(&script).arg("two").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"one\n").unwrap();
        assert_eq!(text(&child.wait_with_output().unwrap()), "one two\n");
    }
}

#[test]
fn what_cannot_be_run_is_told_in_one_sentence() {
    let runtime = private_folder();
    let shim = common::products().join("shim/libcuda.so.1");
    let shim = shim.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["--", "ebb-no-such-command"], 127, "PATH"),
        (&["--", "/no/such/file"], 127, "/no/such/file"),
        (&["--", "/etc/passwd"], 126, "chmod +x"),
        (&["--", "/etc"], 126, "folder"),
        (&["--driver", "/no/libcuda.so.1", "--", "true"], 125, "/no/libcuda.so.1"),
        (&["--driver", "/etc/passwd", "--", "true"], 125, "no library"),
        (&["--driver", shim, "--", "true"], 125, "ebb's own library"),
        (&["--report=json:/etc/passwd/x", "--", "true"], 125, "/etc/passwd/x"),
    ];
    for (words, status, sentence) in cases {
        for report in [&[][..], &["--report"]] {
            if words[0].starts_with("--report") && !report.is_empty() {
                continue;
            }
            let device = if words[0] == "--driver" { &SOFT[..1] } else { &SOFT };
            let output = common::ebb(runtime.path()).args(device).args(report).args(words).output().unwrap();
            let message = errors(&output);
            assert_eq!(output.status.code(), Some(status), "{words:?}: {message}");
            assert!(message.contains(sentence) && message.starts_with("ebb: "), "{words:?}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
    assert_eq!(common::ebb(runtime.path()).arg("run").output().unwrap().status.code(), Some(2));
}

#[test]
fn a_driver_named_in_the_environment_is_checked_too() {
    let runtime = private_folder();
    common::products();
    let mut command = common::ebb(runtime.path());
    let output = command.env("EBB_DRIVER", "/etc/passwd").args(["run", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(errors(&output).contains("EBB_DRIVER"), "{}", errors(&output));
}

#[test]
fn without_its_library_ebb_refuses() {
    let folder = private_folder();
    let lonely = folder.path().join("ebb");
    fs::copy(env!("CARGO_BIN_EXE_ebb"), &lonely).unwrap();
    let output = Command::new(&lonely).args(["run", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(errors(&output).contains("install ebb again"), "{}", errors(&output));
}

#[test]
fn a_report_file_keeps_what_it_has_until_there_is_a_report() {
    let runtime = private_folder();
    let file = runtime.path().join("report");
    fs::write(&file, "old, and longer than the new one would be: ".repeat(100)).unwrap();
    let option = format!("--report=text:{}", file.display());
    let old = fs::read(&file).unwrap();
    soft(runtime.path()).args([&option, "ebb-no-such-command"]).output().unwrap();
    assert_eq!(fs::read(&file).unwrap(), old);
    let output = soft(runtime.path()).args([&option, "true"]).output().unwrap();
    assert_eq!(errors(&output), "");
    let report = fs::read_to_string(&file).unwrap();
    assert!(
        report.ends_with("CUDA was never used by this command.\n") && !report.contains("old"),
        "{report}"
    );
}

#[test]
fn a_report_on_standard_output_spares_what_stands_there() {
    let runtime = private_folder();
    let file = runtime.path().join("log");
    let mut command = soft(runtime.path());
    command
        .args(["--report=text:/dev/stdout", "--", "echo", "first"])
        .stdout(fs::File::create(&file).unwrap());
    assert!(command.status().unwrap().success());
    let log = fs::read_to_string(&file).unwrap();
    assert!(log.starts_with("first\nebb: `echo first`") && log.contains("never used"), "{log}");
}

#[test]
fn a_command_without_cuda_has_an_empty_report() {
    let runtime = private_folder();
    let output = shell(runtime.path(), &["--report=json"], "exit 3");
    let report = json::parse(&errors(&output));
    assert_eq!(report["cuda_used"], Value::Bool(false));
    assert_eq!(report["status"], Value::Number(3));
    assert_eq!(report["processes"].items().len(), 0);
    assert_eq!(report["total"]["launches"]["plain"]["default"], Value::Number(0));
    assert_eq!(report["sentences"].items(), [Value::Text("CUDA was never used by this command.".to_owned())]);
    assert_eq!(fs::read_dir(runtime.path()).unwrap().count(), 0, "the run folder was left behind");
}

#[test]
fn preloads_and_library_paths_are_added_to() {
    let runtime = private_folder();
    let shim = common::products().join("shim");
    let (file, folder) = (shim.join("libcuda.so.1"), shim.display());
    let mut command = soft(runtime.path());
    command.env("LD_PRELOAD", "libm.so.6").env("LD_LIBRARY_PATH", "/nowhere");
    command.args(["--", "/bin/sh", "-c", "echo $LD_PRELOAD; echo $LD_LIBRARY_PATH"]);
    let expected = format!("libm.so.6:{}\n{folder}:/nowhere\n", file.display());
    assert_eq!(text(&command.output().unwrap()), expected);
}

#[test]
fn runs_inside_runs_preload_once_and_count_for_both() {
    let runtime = private_folder();
    let (outer, inner) = (runtime.path().join("outer"), runtime.path().join("inner"));
    let mut command = soft(runtime.path());
    command.arg(format!("--report=json:{}", outer.display())).arg("--").arg(env!("CARGO_BIN_EXE_ebb"));
    command
        .args(["run", "--no-daemon", &format!("--report=json:{}", inner.display()), "--"])
        .arg(env!("CARGO_BIN_EXE_ebb"));
    command.args(["run", "--no-daemon", "--", "/bin/sh", "-c", "echo $LD_PRELOAD; exec \"$@\"", "sh"]);
    let output = command.args(tenant("latency", "0.1")).stdin(Stdio::null()).output().unwrap();
    let preload = text(&output).lines().next().unwrap().to_owned();
    assert_eq!(preload, common::products().join("shim/libcuda.so.1").to_str().unwrap());
    let launches = |file: &Path| report_in(file)["total"]["launches"]["plain"]["created"].number();
    assert!(launches(&inner) > 0);
    assert_eq!(launches(&outer), launches(&inner));
}

#[test]
fn every_launch_of_a_tenant_is_counted() {
    let runtime = private_folder();
    let file = runtime.path().join("report.json");
    let mut command = soft(runtime.path());
    command.arg(format!("--report=json:{}", file.display())).arg("--").args(tenant("latency", "0.3"));
    let said = text(&command.stdin(Stdio::null()).output().unwrap());
    let last = said.lines().last().unwrap();
    let requests: i128 = last.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(requests > 0, "{said}");
    let report = report_in(&file);
    assert_eq!(report["cuda_used"], Value::Bool(true));
    let process = &report["processes"].items()[0];
    assert_eq!(process["kernels_run"].number(), i128::from(REQUEST_LAUNCHES) * requests);
    assert_eq!(process["driver_version"].number(), 13000);
    assert_eq!(report["total"]["modules"]["ptx"].number(), 1);
    assert_eq!(report["total"]["synchronisations"]["stream"].number(), requests);
    let kernel = &report["kernels"].items()[0];
    assert_eq!(kernel["name"], Value::Text("work".to_owned()));
    assert_eq!(kernel["launches"].number(), i128::from(REQUEST_LAUNCHES) * requests);
    assert_eq!(kernel["parameter_bytes"].number(), 16);
}

#[test]
fn the_text_report_shows_the_same_figures() {
    let runtime = private_folder();
    let mut command = soft(runtime.path());
    command.args(["--report", "--"]).args(tenant("latency", "0.1")).stdin(Stdio::null());
    let output = command.output().unwrap();
    let requests: u64 = text(&output).lines().last().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let report = errors(&output);
    let row = |label: &str| {
        let found = report.lines().find(|line| line.trim_start().starts_with(label));
        found.unwrap_or_else(|| panic!("no row {label} in {report}")).split_whitespace().map(str::to_owned)
    };
    let launches = (u64::from(REQUEST_LAUNCHES) * requests).to_string();
    assert_eq!(row("plain").collect::<Vec<_>>(), ["plain", "0", "0", &launches, &launches]);
    assert_eq!(row("kernels run").next_back().unwrap(), launches);
    assert_eq!(row("processes attached").next_back().unwrap(), "1");
    assert_eq!(row(&launches).next_back().unwrap(), "work");
}

#[test]
fn a_path_the_loader_cannot_read_is_reached_by_a_link() {
    let base = private_folder();
    let root = base.path().join("a b:c");
    let (bin, library) = (root.join("bin"), root.join("lib/ebb"));
    fs::create_dir_all(&bin).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_ebb"), bin.join("ebb")).unwrap();
    for product in ["shim", "softcuda"] {
        fs::create_dir_all(library.join(product)).unwrap();
        let built = common::products().join(format!("lib{product}.so"));
        fs::copy(built, library.join(product).join("libcuda.so.1")).unwrap();
    }
    let runtime = base.path().join("runtime");
    let mut command = Command::new(bin.join("ebb"));
    command.env("EBB_RUNTIME_DIR", &runtime).env_remove("LD_PRELOAD").args(SOFT).arg("--report=json");
    command.arg("--").args(tenant("latency", "0.1")).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(json::parse(&errors(&output))["processes"].items().len(), 1);
    let odd = base.path().join("d e");
    let refused = command.env("EBB_RUNTIME_DIR", &odd).output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    assert!(errors(&refused).contains("EBB_RUNTIME_DIR"), "{}", errors(&refused));
}

#[test]
fn without_a_folder_for_ledgers_the_command_runs_all_the_same() {
    let folder = private_folder();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let output = shell(&file, &["--report"], "echo ran; exit 4");
    let message = errors(&output);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(4), &b"ran\n"[..]));
    assert!(
        message.starts_with("ebb: nothing will be counted") && message.contains("EBB_RUNTIME_DIR"),
        "{message}"
    );
    assert!(message.contains("There are no figures"), "{message}");
    let quiet = shell(&file, &["--quiet", "--report=json"], "exit 4");
    assert_eq!(json::parse(&errors(&quiet))["cuda_used"], Value::Null);
}

#[test]
fn a_bad_runtime_folder_of_the_session_is_replaced_by_one_of_the_user() {
    let folder = private_folder();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    common::products();
    let mut command = common::ebb(&file);
    command.env_remove("EBB_RUNTIME_DIR").env("XDG_RUNTIME_DIR", &file).args(SOFT);
    let output = command.args(["--report", "--", "/bin/sh", "-c", "echo $EBB_RUN"]).output().unwrap();
    let folder = text(&output);
    let known = ["/dev/shm/ebb-", "/tmp/ebb-"].iter().any(|start| folder.starts_with(start));
    assert!(known, "{folder}: {}", errors(&output));
    assert!(!Path::new(text(&output).trim()).exists());
}

#[test]
fn what_ebb_cannot_see_is_said_and_run() {
    let ldconfig = Path::new("/sbin/ldconfig");
    let program = installation::program::inspect(ldconfig.as_os_str(), None);
    let reason = program.map(|program| program.preload);
    if !matches!(reason, Ok(installation::program::Preload::No(installation::program::Reason::Static))) {
        eprintln!("skipped: /sbin/ldconfig, which is statically linked on most systems, is not here");
        return;
    }
    let runtime = private_folder();
    let output = soft(runtime.path()).args(["--report=json", "/sbin/ldconfig", "-p"]).output().unwrap();
    let message = errors(&output);
    let (warning, report) = message.split_once('\n').unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
    assert!(warning.starts_with("ebb: ") && warning.contains("statically linked"), "{warning}");
    assert_eq!(json::parse(report)["cuda_used"], Value::Null);
    let quiet = soft(runtime.path()).args(["--quiet", "/sbin/ldconfig", "-p"]).output().unwrap();
    assert_eq!(errors(&quiet), "");
}

#[test]
fn without_a_driver_the_command_runs_as_it_would_without_ebb() {
    let runtime = private_folder();
    common::products();
    let has_driver = Command::new("/sbin/ldconfig").arg("-p").output();
    let has_driver =
        has_driver.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).contains("libcuda.so.1"));
    if has_driver || Path::new("/proc/driver/nvidia").exists() {
        eprintln!("skipped: this machine has a driver");
        return;
    }
    let mut command = common::ebb(runtime.path());
    command.env_remove("LD_LIBRARY_PATH").args(["run", "--no-daemon", "--report", "--", "/bin/sh", "-c"]);
    let output = command.arg("echo ${LD_PRELOAD-none} ${LD_LIBRARY_PATH-none}").output().unwrap();
    assert_eq!(text(&output), "none none\n");
    let message = errors(&output);
    assert!(message.contains("no NVIDIA driver") && message.contains("--device soft"), "{message}");
}

#[test]
fn a_disabled_ebb_does_not_claim_that_cuda_was_not_used() {
    let runtime = private_folder();
    let mut command = soft(runtime.path());
    command.env("EBB_DISABLE", "1").args(["--quiet", "--report=json", "--"]).args(tenant("latency", "0.1"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success());
    let report = json::parse(&errors(&output));
    assert_ne!(report["cuda_used"], Value::Bool(false));
    assert!(matches!(&report["blind"], Value::Text(reason) if reason.contains("EBB_DISABLE")));
}

#[test]
fn who_reaches_the_driver_round_ebb_is_named() {
    let runtime = private_folder();
    let driver = common::products().join("softcuda/libcuda.so.1");
    let mut command = soft(runtime.path());
    command.args(["--report=json", "--", "/usr/bin/env", "-u", "LD_PRELOAD", "-u", "LD_LIBRARY_PATH"]);
    let words = tenant("best-effort", "3").into_iter().map(|word| match word.as_str() {
        "libcuda.so.1" => driver.to_str().unwrap().to_owned(),
        _ => word,
    });
    let output = command.args(words).stdin(Stdio::null()).output().unwrap();
    let report = json::parse(&errors(&output));
    assert_eq!(report["processes"].items().len(), 0);
    let [round] = report["round_ebb"].items() else { panic!("{}", errors(&output)) };
    assert_eq!(round["library"], Value::Text(driver.canonicalize().unwrap().display().to_string()));
    assert!(errors(&output).contains("reached the driver round ebb"));
    assert_eq!(report["cuda_used"], Value::Bool(true));
}
