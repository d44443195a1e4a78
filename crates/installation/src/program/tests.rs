use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const SOMEBODY: Caller = Caller { user: 12345, group: 12345 };

/// A folder to put commands into, and to search them in.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn inspect(&self, command: &str) -> Result<Program, Error> {
        inspect_as(SOMEBODY, OsStr::new(command), Some(self.0.path().as_os_str()))
    }

    fn refusal(&self, command: &str) -> Reason {
        match self.inspect(command).unwrap().preload {
            Preload::No(reason) => reason,
            Preload::Works => panic!("a preload should not work"),
        }
    }
}

/// A 64-bit ELF file of a header and, if it has a loader, one program header that names it.
fn elf(machine: u16, loader: Option<&str>) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, value: u16| file.extend(value.to_le_bytes());
    let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_le_bytes());
    let long = |file: &mut Vec<u8>, value: u64| file.extend(value.to_le_bytes());
    half(&mut file, 2);
    half(&mut file, machine);
    word(&mut file, 1);
    [0u64, 64, 0].into_iter().for_each(|value| long(&mut file, value));
    word(&mut file, 0);
    [64, 56, u16::from(loader.is_some()), 64, 0, 0].into_iter().for_each(|value| half(&mut file, value));
    if let Some(loader) = loader {
        const INTERPRETER: u32 = 3;
        let size = loader.len() as u64 + 1;
        word(&mut file, INTERPRETER);
        word(&mut file, 4);
        [120, 0, 0, size, size, 1].into_iter().for_each(|value| long(&mut file, value));
        file.extend(loader.bytes().chain([0]));
    }
    file
}

fn here() -> u16 {
    if cfg!(target_arch = "aarch64") { 183 } else { 62 }
}

/// A loader that is certainly installed.
const LOADER: &str = "/bin/sh";

#[test]
fn this_test_itself_can_be_preloaded_into() {
    let own = std::env::current_exe().unwrap();
    let program = inspect(own.as_os_str(), None).unwrap();
    assert_eq!(program, Program { path: own.clone(), binary: own, preload: Preload::Works });
}

#[test]
fn commands_are_looked_for_as_execvp_does() {
    let (first, second) = (Folder::new(), Folder::new());
    first.put("tool", "not for execution", 0o644);
    let tool = second.put("tool", elf(here(), Some(LOADER)), 0o755);
    let path = format!("/nowhere:{}:{}", first.0.path().display(), second.0.path().display());
    let program = inspect_as(SOMEBODY, OsStr::new("tool"), Some(OsStr::new(&path))).unwrap();
    assert_eq!((program.path, program.preload), (tool, Preload::Works));
    assert!(matches!(first.inspect("tool"), Err(Error::NotExecutable { .. })));
    assert!(matches!(first.inspect("other"), Err(Error::NoCommand { .. })));
    assert!(matches!(first.inspect(""), Err(Error::NoCommand { .. })));
    assert!(matches!(first.inspect("/nowhere/tool"), Err(Error::NoFile { .. })));
    assert!(matches!(first.inspect("/"), Err(Error::Folder { .. })));
}

#[test]
fn without_a_search_path_there_is_still_a_shell() {
    assert_eq!(inspect(OsStr::new("sh"), None).unwrap().path, Path::new("/bin/sh"));
}

#[test]
fn static_musl_and_foreign_programs_are_refused_with_their_reasons() {
    let folder = Folder::new();
    folder.put("static", elf(here(), None), 0o755);
    folder.put("musl", elf(here(), Some("/lib/ld-musl-x86_64.so.1")), 0o755);
    folder.put("homeless", elf(here(), Some("/nowhere/ld.so")), 0o755);
    folder.put("foreign", elf(243, Some(LOADER)), 0o755);
    assert_eq!(folder.refusal("static"), Reason::Static);
    assert_eq!(folder.refusal("musl"), Reason::Musl);
    assert_eq!(folder.refusal("homeless"), Reason::NoLoader(PathBuf::from("/nowhere/ld.so")));
    let foreign = folder.refusal("foreign");
    assert_eq!(foreign, Reason::Architecture(Architecture::Other { machine: 243, bits: 64 }));
    assert!(foreign.to_string().contains("ELF 243"), "{foreign}");
}

#[test]
fn set_id_bits_count_only_where_they_change_somebody() {
    let folder = Folder::new();
    let path = folder.put("tool", elf(here(), Some(LOADER)), 0o4755);
    let owner = fs::metadata(&path).unwrap();
    let itself = Caller { user: owner.uid(), group: owner.gid() };
    let judged = |caller, mode| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        judge(caller, &path).unwrap()
    };
    assert_eq!(judged(SOMEBODY, 0o4755), Preload::No(Reason::SetId));
    assert_eq!(judged(SOMEBODY, 0o2755), Preload::No(Reason::SetId));
    assert_eq!(judged(SOMEBODY, 0o2745), Preload::Works);
    assert_eq!(judged(itself, 0o6755), Preload::Works);
}

#[test]
fn capabilities_are_seen_where_they_can_be_set() {
    let folder = Folder::new();
    let path = folder.put("tool", elf(here(), Some(LOADER)), 0o755);
    // Version 2, effective: CAP_SYS_NICE permitted.
    let mut value = [0u8; 20];
    value[..4].copy_from_slice(&0x0200_0001u32.to_le_bytes());
    value[4..8].copy_from_slice(&(1u32 << 23).to_le_bytes());
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&path, "security.capability", &value, flags).is_err() {
        eprintln!("skipped: capabilities cannot be set here");
        return;
    }
    assert_eq!(folder.refusal("tool"), Reason::Capabilities);
}

#[test]
fn scripts_lead_to_their_interpreters() {
    let folder = Folder::new();
    let engine = folder.put("engine", elf(here(), Some(LOADER)), 0o755);
    folder.put("plain", format!("#! {}\t-x\nfirst", engine.display()), 0o755);
    folder.put("nested", format!("#!{}\n", folder.0.path().join("plain").display()), 0o755);
    folder.put("env", "#!/usr/bin/env engine\n", 0o755);
    folder.put("split", "#!/usr/bin/env -S A=1 engine -u\n", 0o755);
    for script in ["plain", "nested", "env", "split"] {
        let program = folder.inspect(script).unwrap();
        assert_eq!(
            (program.path, program.binary),
            (folder.0.path().join(script), engine.clone()),
            "{script}"
        );
    }
    folder.put("bare", "echo hello\n", 0o755);
    assert_eq!(folder.inspect("bare").unwrap().binary, Path::new("/bin/sh"));
}

#[test]
fn a_script_without_a_usable_interpreter_says_which_one_it_wants() {
    let folder = Folder::new();
    folder.put("lost", "#!/nowhere/python\n", 0o755);
    folder.put("unknown", "#!/usr/bin/env python9\n", 0o755);
    folder.put("nothing", "#!   \n", 0o755);
    folder.put("noise", b"MZ\0\0", 0o755);
    assert!(folder.inspect("lost").unwrap_err().to_string().contains("/nowhere/python"));
    assert!(folder.inspect("unknown").unwrap_err().to_string().contains("python9"));
    assert!(matches!(folder.inspect("nothing"), Err(Error::NoProgram { .. })));
    assert!(matches!(folder.inspect("noise"), Err(Error::NoProgram { .. })));
}

#[test]
fn a_script_that_interprets_itself_comes_to_an_end() {
    let folder = Folder::new();
    let path = folder.0.path().join("snake");
    folder.put("snake", format!("#!{}\n", path.display()), 0o755);
    assert!(matches!(folder.inspect("snake"), Err(Error::EndlessScripts { .. })));
}

#[test]
fn damaged_programs_are_called_so() {
    let folder = Folder::new();
    let mut file = elf(here(), Some(LOADER));
    file.truncate(70);
    folder.put("cut", &file, 0o755);
    assert!(matches!(folder.inspect("cut"), Err(Error::Damaged { .. })));
    file.truncate(20);
    folder.put("stump", &file, 0o755);
    assert!(matches!(folder.inspect("stump"), Err(Error::Damaged { .. })));
}

#[test]
fn links_are_followed() {
    let folder = Folder::new();
    folder.put("static", elf(here(), None), 0o755);
    symlink("static", folder.0.path().join("link")).unwrap();
    assert_eq!(folder.refusal("link"), Reason::Static);
}
