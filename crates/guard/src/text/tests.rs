use super::*;
use crate::Rule;

/// The suite's kernels, as nvcc made them: two targets, with and without optimisation.
fn corpus() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/kernels/ptx");
    let files = std::fs::read_dir(folder).expect("the suite's kernels are in the repository");
    let paths = files.map(|file| file.expect("the folder can be read").path());
    let mut texts: Vec<_> = paths
        .map(|path| {
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("PTX is text"))
        })
        .collect();
    texts.sort();
    assert!(texts.len() > 100, "{} files", texts.len());
    texts
}

fn module(body: &str) -> String {
    format!(".version 8.0\n.target sm_90\n.address_size 64\n{body}\n")
}

fn kernel(before: &str, body: &str) -> String {
    module(&format!(
        "{before}\n.visible .entry k(.param .u64 p)\n{{\n\t.reg .b32 %r<9>;\n\t.reg .b64 %d<9>;\n\t.reg .pred %p<3>;\n{body}\n\tret;\n}}"
    ))
}

fn verdict_of(text: &str) -> Verdict {
    let rewritten = rewrite_ptx(text).expect("the module can be rewritten");
    rewritten.kernels.into_iter().find(|kernel| kernel.name == "k").expect("there is a k").verdict
}

fn text_of(rewritten: &Rewritten) -> &str {
    let text = std::str::from_utf8(&rewritten.image).expect("PTX is text");
    text.strip_suffix('\0').expect("text ends with a NUL")
}

const PLAIN: Verdict = Verdict::Guard(Rule::Plain);
const ORDERED: Verdict = Verdict::Guard(Rule::Ordered);

fn refused(reason: Reason) -> Verdict {
    Verdict::Refuse(reason)
}

#[test]
fn rewriting_only_inserts() {
    for (file, text) in corpus() {
        let rewritten = rewrite_ptx(&text).expect(&file);
        let target = survey::Survey::of(&ptx::parse(text.as_str()).module).expect(&file).target;
        let prefix = unused_prefix(&text);
        let parameter = prologue::parameter(&prefix);
        let without = text_of(&rewritten)
            .replace(&prologue::text(&prefix, target), "")
            .replace(&format!(", {parameter}"), "")
            .replace(&parameter, "");
        assert_eq!(without, text, "{file}");
    }
}

#[test]
fn what_is_rewritten_parses_and_has_the_control_words_last() {
    for (file, text) in corpus() {
        let rewritten = rewrite_ptx(&text).expect(&file);
        let parse = ptx::parse(text_of(&rewritten));
        assert_eq!(parse.errors, [], "{file}");
        parse.module.verify().expect(&file);
        for kernel in &rewritten.kernels {
            let function = parse.module.function(&kernel.name).expect("kernels keep their names");
            let layout = Layout::of(&parse.module, function).expect("it had one");
            let own = kernel.parameters.len();
            assert_eq!(layout.parameters[..own], kernel.parameters[..], "{file}: {}", kernel.name);
            match kernel.verdict {
                Verdict::Guard(_) => {
                    let control = crate::Parameter { offset: kernel.control_offset, size: Control::SIZE };
                    assert_eq!(layout.parameters[own..], [control], "{file}: {}", kernel.name);
                }
                Verdict::Refuse(_) => assert_eq!(layout.parameters.len(), own),
            }
        }
    }
}

/// Texts that end somewhere, and texts that lack a piece: an answer or an error, never a panic.
#[test]
fn no_text_is_too_broken() {
    for (file, text) in corpus() {
        for piece in 1..12 {
            let cut = text.len() * piece / 12;
            let broken = [&text[..cut], &[&text[..cut], &text[(cut + 97).min(text.len())..]].concat()];
            for broken in broken {
                if let Ok(rewritten) = rewrite_ptx(broken) {
                    assert!(rewritten.image.len() > broken.len(), "{file} cut at {cut}");
                }
            }
        }
    }
    let huge = module(".entry k(.param .b8 a[4294967290], .param .b8 b[4294967290]) { ret; }");
    assert_eq!(rewrite_ptx(&huge).expect("it is PTX").kernels[0].verdict, refused(Reason::UnknownRecords));
    let large = module(".entry k(.param .b8 a[4294967290]) { ret; }");
    assert_eq!(
        rewrite_ptx(&large).expect("it is PTX").kernels[0].verdict,
        refused(Reason::ParametersTooLarge)
    );
}

#[test]
fn a_rewritten_text_can_be_rewritten_again() {
    let once = rewrite_ptx(&kernel("", "")).expect("it can be rewritten");
    let twice = rewrite_ptx(text_of(&once)).expect("names that are taken are not taken again");
    assert_eq!(ptx::parse(text_of(&twice)).errors, []);
    assert_eq!(twice.kernels[0].parameters.len(), 2);
    assert_eq!(twice.kernels[0].control_offset, 40);
}

#[test]
fn the_suite_is_judged_as_its_sources_say() {
    let expected = [
        ("vector_add", "vector_add", PLAIN),
        ("matmul", "matmul", PLAIN),
        ("params", "no_parameters", PLAIN),
        ("order", "await_flag", ORDERED),
        ("scan", "scan_by_block", ORDERED),
        ("scan", "scan_by_ticket", ORDERED),
        ("cooperative", "rotate", refused(Reason::Cooperative)),
        ("globals", "touch_globals", refused(Reason::TouchesModuleMemory)),
        ("link_caller", "linked", refused(Reason::Relocatable)),
    ];
    let corpus = corpus();
    for (file, name, verdict) in expected {
        for (path, text) in corpus.iter().filter(|(path, _)| path.split('.').next() == Some(file)) {
            let kernels = rewrite_ptx(text).expect(path).kernels;
            let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            let kernel = kernels.iter().find(|kernel| kernel.name == name);
            assert_eq!(kernel.map(|kernel| kernel.verdict), Some(verdict), "{path}: {name} of {names:?}");
        }
    }
}

#[test]
fn kernels_without_parameters_get_one() {
    for header in [".entry k { ret; }", ".entry k() { ret; }"] {
        let rewritten = rewrite_ptx(&module(header)).expect("it can be rewritten");
        assert_eq!(rewritten.kernels[0].verdict, PLAIN);
        assert_eq!((rewritten.kernels[0].parameters.len(), rewritten.kernels[0].control_offset), (0, 0));
        assert!(text_of(&rewritten).contains(".entry k(.param .align 8 .b8 ebb_control[32])"), "{header}");
    }
}

#[test]
fn parameters_are_where_a_launch_puts_them() {
    let text = module(
        ".entry k(.param .u8 a, .param .u32 b, .param .align 16 .b8 c[20], .param .v2 .f32 d, .param .f16x2 e) { ret; }",
    );
    let kernel = &rewrite_ptx(&text).expect("it can be rewritten").kernels[0];
    let places: Vec<_> =
        kernel.parameters.iter().map(|parameter| (parameter.offset, parameter.size)).collect();
    assert_eq!(places, [(0, 1), (4, 4), (16, 20), (40, 8), (48, 4)]);
    assert_eq!(kernel.control_offset, 56);
}

#[test]
fn parameters_that_leave_no_room_are_refused() {
    let large = |version: &str, bytes: u32| {
        let text = format!(
            ".version {version}\n.target sm_90\n.address_size 64\n.entry k(.param .align 8 .b8 p[{bytes}]) {{ ret; }}"
        );
        verdict_of(&text)
    };
    assert_eq!(large("8.0", 4064), PLAIN);
    assert_eq!(large("8.0", 4065), refused(Reason::ParametersTooLarge));
    assert_eq!(large("8.1", 4065), PLAIN);
    assert_eq!(large("8.1", 32760), refused(Reason::ParametersTooLarge));
}

#[test]
fn older_targets_get_older_instructions() {
    let text_for = |version: &str, target: &str| {
        let text = format!(".version {version}\n.target {target}\n.address_size 64\n.entry k() {{ ret; }}");
        text_of(&rewrite_ptx(&text).expect("it can be rewritten")).to_owned()
    };
    let (old, new) = (text_for("5.0", "sm_52"), text_for("8.0", "sm_90a"));
    assert!(old.contains("ld.volatile.global") && !old.contains("relaxed") && !old.contains("cluster"));
    assert!(old.contains("bar.red.or.pred") && !old.contains("barrier.red"));
    assert!(
        new.contains("ld.relaxed.gpu.global") && new.contains("%clusterid.x") && !new.contains("volatile")
    );
    assert!(!text_for("7.0", "sm_80").contains("cluster"));
}

#[test]
fn what_is_no_module_of_ours_is_an_error() {
    assert!(matches!(
        rewrite_ptx(".version 8.0\n.target sm_90\n.address_size 64\n.entry k( {"),
        Err(Error::Text(_))
    ));
    assert_eq!(rewrite_ptx(".version 8.0\n.target sm_90\n.address_size 32\n"), Err(Error::AddressSize));
    assert_eq!(rewrite_ptx(".version 8.0\n.address_size 64\n"), Err(Error::Target));
}

#[test]
fn variables_of_the_module_are_not_shared_with_a_twin() {
    let touches = "\tld.global.u32 %r1, [v];";
    let memory = refused(Reason::TouchesModuleMemory);
    assert_eq!(verdict_of(&kernel(".global .u32 v = 3;", touches)), memory);
    assert_eq!(verdict_of(&kernel(".visible .const .u32 v = 3;", touches)), memory);
    assert_eq!(verdict_of(&kernel(".global .u32 v = 3;", "")), PLAIN, "somebody else's");
    assert_eq!(verdict_of(&kernel(".extern .shared .align 16 .b8 v[];", touches)), PLAIN);
    assert_eq!(verdict_of(&kernel(".global .align 1 .b8 $str[3] = {1, 2};", "\tmov.u64 %d1, $str;")), PLAIN);
    assert_eq!(verdict_of(&kernel(".extern .global .u32 v;", "")), refused(Reason::Relocatable));
}

#[test]
fn what_a_called_function_does_counts() {
    let call = "\tcall.uni f, ();";
    let with = |body: &str| {
        format!(".global .u32 v;\n.func f() {{ .reg .b32 %r<9>; .reg .b64 %d<9>; {body} ret; }}")
    };
    assert_eq!(verdict_of(&kernel(&with(""), call)), PLAIN);
    assert_eq!(
        verdict_of(&kernel(&with("st.global.u32 [v], 1;"), call)),
        refused(Reason::TouchesModuleMemory)
    );
    assert_eq!(verdict_of(&kernel(&with("st.global.u32 [v], 1;"), "")), PLAIN, "nobody calls it");
    assert_eq!(verdict_of(&kernel(&with("ld.volatile.global.u32 %r1, [%d1];"), call)), ORDERED);
    let table = ".global .u64 _ZTV1A[1] = {f};";
    let through_table = format!("{}\n{table}", with("st.global.u32 [v], 1;"));
    assert_eq!(
        verdict_of(&kernel(&through_table, "\tmov.u64 %d1, _ZTV1A;")),
        refused(Reason::TouchesModuleMemory)
    );
}

#[test]
fn functions_from_elsewhere_are_the_drivers_or_to_be_linked() {
    let announce =
        |name: &str| kernel(&format!(".extern .func {name}();"), &format!("\tcall.uni {name}, ();"));
    assert_eq!(verdict_of(&announce("vprintf")), PLAIN);
    assert_eq!(verdict_of(&announce("scale")), refused(Reason::Relocatable));
    assert_eq!(verdict_of(&announce("cudaLaunchDeviceV2")), refused(Reason::DynamicParallelism));
}

#[test]
fn loops_that_ask_again_need_order() {
    let looped =
        |ask: &str| kernel("", &format!("$again:\n\t{ask}\n\tsetp.eq.u32 %p1, %r1, 0;\n\t@%p1 bra $again;"));
    for ask in [
        "ld.volatile.global.u32 %r1, [%d1];",
        "ld.acquire.gpu.u32 %r1, [%d1];",
        "ld.relaxed.gpu.global.u32 %r1, [%d1];",
        "atom.global.add.u32 %r1, [%d1], 0;",
        "nanosleep.u32 100;",
    ] {
        assert_eq!(verdict_of(&looped(ask)), ORDERED, "{ask}");
    }
    for ask in [
        "ld.global.u32 %r1, [%d1];",
        "ld.volatile.shared.u32 %r1, [%d1];",
        "atom.shared.add.u32 %r1, [%d1], 0;",
        "red.global.add.u32 [%d1], 1;",
        "atom.global.add.u32 _, [%d1], 1;",
    ] {
        assert_eq!(verdict_of(&looped(ask)), PLAIN, "{ask}");
    }
    assert_eq!(verdict_of(&kernel("", "\tatom.global.add.u32 %r1, [%d1], 1;")), PLAIN, "once is no waiting");
}

#[test]
fn clusters_need_order() {
    let text = module(".entry k() .reqnctapercluster 2, 1, 1 { ret; }");
    assert_eq!(verdict_of(&text), ORDERED);
    assert_eq!(verdict_of(&kernel("", "\tbarrier.cluster.arrive;")), ORDERED);
    assert_eq!(verdict_of(&kernel("", "\tmov.u32 %r1, %cluster_ctarank;")), ORDERED);
}

#[test]
fn kernels_of_nccl_are_known_by_name() {
    let kernels = rewrite_ptx(&module(".entry ncclDevKernel_AllReduce() { ret; }")).expect("fine").kernels;
    assert_eq!(kernels[0].verdict, refused(Reason::Nccl));
}
