use super::*;
use crate::configuration::{Ceiling, Rule, Scope, Subject};
use crate::report::State;
use model::Bytes;

pub(super) const GPU: Gpu = Gpu([7; 16]);
const EVERYBODYS: BoardKey = BoardKey { gpu: GPU, user: None };

pub(super) fn registry(rules: &[Rule]) -> Registry {
    let mut configuration = Configuration::plain(Scope::User, 1000);
    configuration.ceilings.rules = rules.to_vec();
    Registry::new(configuration, 0xabcd, "/here".into())
}

pub(super) fn peer(user: u32, pid: i32) -> Peer {
    Peer { user, groups: vec![user], pid: rustix::process::Pid::from_raw(pid), life: None }
}

pub(super) fn registration(tenant: u64, name: &str) -> Registration {
    Registration { name: board::Label::new(name.as_bytes()), ..Registration::new(GPU, tenant) }
}

fn low() -> Ceiling {
    Ceiling { class: Class::BestEffort, weight: 2, priority: 0 }
}

pub(super) fn process(registry: &Registry, pid: u32) -> crate::report::Process {
    let report = registry.report(board::now());
    report.gpus[0].processes.iter().find(|process| process.pid == pid).unwrap().clone()
}

#[test]
fn a_claim_above_its_ceiling_is_lowered_and_told() {
    let mut registry = registry(&[Rule { subject: Subject::User(5), ceiling: low() }]);
    let claim = Registration { class: Class::Latency, weight: 9, ..registration(1, "serve") };
    let (_, lowered) = registry.register(&peer(5, 50), &claim, SeatedWith::Everybody).unwrap();
    assert_eq!((lowered.terms.class, lowered.lowered, lowered.generation), (Class::BestEffort, true, 0xabcd));
    let (_, granted) =
        registry.register(&peer(6, 60), &Registration { tenant: 2, ..claim }, SeatedWith::Everybody).unwrap();
    assert_eq!((granted.terms.class, granted.lowered), (Class::Latency, false));
    let (first, second) = (process(&registry, 50), process(&registry, 60));
    assert!(
        first.lowered && first.class == "best-effort" && first.asked.class == "latency" && first.weight == 2
    );
    assert!(!second.lowered && second.weight == 9);
    let sentences = registry.report(board::now()).sentences;
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    assert!(sentences[0].starts_with("serve (50) asked for class latency"), "{sentences:?}");
}

#[test]
fn nobody_joins_the_tenant_of_another_user() {
    let mut registry = registry(&[]);
    registry.register(&peer(5, 50), &registration(1, "mine"), SeatedWith::Everybody).unwrap();
    registry.register(&peer(5, 51), &registration(1, "mine"), SeatedWith::Everybody).unwrap();
    registry.register(&peer(6, 60), &registration(1, "theirs"), SeatedWith::Everybody).unwrap();
    let number = |pid| process(&registry, pid).tenant;
    assert_eq!(number(50), "0000000000000001");
    assert_eq!(number(50), number(51));
    assert_ne!(number(50), number(60));
}

#[test]
fn who_says_no_tenant_is_one_alone() {
    let mut registry = registry(&[]);
    for pid in [50, 51] {
        registry.register(&peer(5, pid), &registration(0, "plain"), SeatedWith::Everybody).unwrap();
    }
    assert_ne!(process(&registry, 50).tenant, process(&registry, 51).tenant);
}

#[test]
fn changes_hold_for_the_whole_tenant_and_for_whom_it_starts_later() {
    let mut registry = registry(&[Rule { subject: Subject::Everyone, ceiling: low() }]);
    let (first, _) =
        registry.register(&peer(5, 50), &registration(1, "train"), SeatedWith::Everybody).unwrap();
    registry.register(&peer(5, 51), &registration(1, "train"), SeatedWith::Everybody).unwrap();
    registry.register(&peer(5, 52), &registration(2, "other"), SeatedWith::Everybody).unwrap();
    let memory = Some(Some(Bytes(1 << 30)));
    let wish = Wish {
        class: Some(Class::Latency),
        weight: Some(100),
        memory,
        paused: Some(true),
        ..Wish::default()
    };
    let changed = registry.change("51", wish).unwrap();
    assert_eq!((changed.name.as_str(), changed.processes), ("train", vec![50, 51]));
    registry.register(&peer(5, 53), &registration(1, "train"), SeatedWith::Everybody).unwrap();
    for pid in [50, 51, 53] {
        let process = process(&registry, pid);
        assert_eq!((process.class.as_str(), process.weight, process.state), ("latency", 100, State::Paused));
        assert_eq!((process.memory_limit_bytes, process.memory_used_bytes), (Some(1 << 30), 0));
        assert!(!process.lowered, "an admin's word is above a ceiling");
    }
    assert_eq!(process(&registry, 52).state, State::Idle);
    // What the board says to the tenant is the same.
    let board = registry.tables[&EVERYBODYS].board;
    let place = registry.sittings[&first].place;
    let seat = board.sit(place).unwrap();
    assert!(seat.terms().paused && seat.terms().class == Class::Latency);
    registry.change("train", Wish { paused: Some(false), ..Wish::default() }).unwrap();
    assert!(!seat.terms().paused && seat.terms().weight == 100);
}

#[test]
fn who_is_meant_must_be_clear_or_nothing_changes() {
    let mut registry = registry(&[]);
    registry.register(&peer(5, 50), &registration(1, "train"), SeatedWith::Everybody).unwrap();
    registry.register(&peer(5, 51), &registration(2, "train"), SeatedWith::Everybody).unwrap();
    let (third, _) = registry.register(&peer(5, 52), &registration(3, "50"), SeatedWith::Everybody).unwrap();
    let pause = Wish { paused: Some(true), ..Wish::default() };
    let unclear = registry.change("train", pause).unwrap_err();
    assert!(unclear.contains("0000000000000001 (train, pid 50)"), "{unclear}");
    assert!(registry.change("50", pause).unwrap_err().contains("may be any of"));
    assert!(registry.change("nobody", pause).unwrap_err().contains("ebb ps"));
    assert!([50, 51, 52].iter().all(|pid| process(&registry, *pid).state == State::Idle));
    registry.leave(third, End::Gone, board::now());
    assert_eq!(registry.change("50", pause).unwrap().processes, [50]);
    assert_eq!(registry.change("0000000000000002", pause).unwrap().processes, [51]);
}

#[test]
fn another_configuration_holds_for_those_who_are_there() {
    let mut registry = registry(&[]);
    let claim = Registration { class: Class::Latency, ..registration(1, "serve") };
    registry.register(&peer(5, 50), &claim, SeatedWith::Everybody).unwrap();
    let mut configuration = registry.configuration.clone();
    configuration.token.quantum = Nanos::from_millis(77);
    configuration.ceilings.rules = vec![Rule { subject: Subject::Everyone, ceiling: low() }];
    registry.configure(configuration);
    let lowered = process(&registry, 50);
    assert!(lowered.lowered && lowered.class == "best-effort");
    assert_eq!(registry.report(board::now()).gpus[0].settings.quantum_ns, 77_000_000);
    registry.configure(Configuration::plain(Scope::User, 1000));
    assert_eq!(process(&registry, 50).class, "latency");
}

/// A latency tenant with pid 50 and a best-effort one with pid 60, and their seats.
fn pair(registry: &mut Registry, slo: Option<Nanos>) -> [board::Seat; 2] {
    let serve = Registration { class: Class::Latency, slo, ..registration(1, "serve") };
    let granted = [
        registry.register(&peer(5, 50), &serve, SeatedWith::Everybody).unwrap().1,
        registry.register(&peer(5, 60), &registration(2, "train"), SeatedWith::Everybody).unwrap().1,
    ];
    granted.map(|granted| registry.tables[&EVERYBODYS].board.sit(granted.place).unwrap())
}

fn spans(count: u64, p50: u64, p99: u64) -> board::Spans {
    board::Spans { count, p50: Nanos::from_micros(p50), p99: Nanos::from_micros(p99) }
}

#[test]
fn another_policy_holds_for_those_who_are_there() {
    let mut registry = registry(&[]);
    let [seat, _] = pair(&mut registry, None);
    let policy = |registry: &Registry| registry.report(board::now()).gpus[0].policy.clone().unwrap();
    assert_eq!((policy(&registry).kind.as_str(), policy(&registry).level), ("slo", Some(8)));
    let mut configuration = registry.configuration.clone();
    configuration.policy.kind = model::Kind::Gaps;
    configuration.policy.hand.quiet = Some(Nanos::from_micros(9));
    configuration.policy.tolerance = Some(70);
    let before = seat.bell();
    registry.configure(configuration);
    let told = policy(&registry);
    assert_eq!((told.kind.as_str(), told.level, told.quiet_ns), ("gaps", None, 9_000));
    assert_eq!(told.tolerance_permille, 70);
    let dials = seat.board().dials();
    assert_eq!((dials.kind, dials.quiet), (model::Kind::Gaps, Nanos::from_micros(9)));
    assert_ne!(seat.bell(), before, "they hear of it");
}

#[test]
fn a_gpu_has_its_own_policy_where_it_was_given_one() {
    let mut registry = registry(&[]);
    let other = Gpu([8; 16]);
    let own = crate::Policy { kind: model::Kind::Fair, tolerance: Some(9), ..crate::Policy::default() };
    registry.configuration.gpus.insert(other, own);
    pair(&mut registry, None);
    let there = Registration { gpu: other, ..registration(3, "elsewhere") };
    registry.register(&peer(5, 70), &there, SeatedWith::Everybody).unwrap();
    let kinds = |registry: &Registry| {
        let of = |gpu| registry.tables[&BoardKey { gpu, user: None }].board.dials().kind;
        (of(GPU), of(other))
    };
    assert_eq!(kinds(&registry), (model::Kind::Slo, model::Kind::Fair));
    assert_eq!(registry.tables[&BoardKey { gpu: other, user: None }].board.settings().tolerance, 9);
    let mut configuration = registry.configuration.clone();
    configuration.force(model::Kind::Gaps);
    registry.configure(configuration);
    assert_eq!(kinds(&registry), (model::Kind::Gaps, model::Kind::Gaps));
}

#[test]
fn a_gpu_is_looked_at_often_only_where_dials_are_turned() {
    let mut registry = registry(&[]);
    let begin = Nanos::from_millis(100_000);
    let (best_effort, _) =
        registry.register(&peer(5, 60), &registration(2, "train"), SeatedWith::Everybody).unwrap();
    assert_eq!(registry.next_look(), None, "there is nobody to protect");
    let serve = Registration { class: Class::Latency, ..registration(1, "serve") };
    registry.register(&peer(5, 50), &serve, SeatedWith::Everybody).unwrap();
    assert_eq!(registry.look(begin), Vec::<String>::new());
    assert_eq!(registry.next_look(), Some(begin + Nanos::from_millis(100)));
    registry.leave(best_effort, End::Gone, begin);
    assert_eq!(registry.next_look(), Some(begin + Nanos::from_millis(1_000)), "it is alone");
}

#[test]
fn what_a_controller_turns_is_reported_and_on_the_board() {
    let mut registry = registry(&[]);
    let [serve, train] = pair(&mut registry, None);
    let mut now = board::now();
    for _ in 0..40 {
        serve.say_experience(board::Experience {
            all: spans(90, 1_000, 2_000),
            alone: spans(190, 1_000, 2_000),
            alone_needed: 100,
        });
        serve.tally().bursts.add(100);
        train.tally().gpu_ns.add(50_000_000);
        now += Nanos::from_millis(100);
        registry.look(now);
    }
    let policy = registry.report(now).gpus[0].policy.clone().unwrap();
    assert!(policy.level > Some(10) && policy.level <= Some(policy.highest_level), "{policy:?}");
    let threshold = serve.board().dials().threshold;
    assert!(policy.threshold_ns < 50_000 && policy.threshold_ns == threshold.0, "{policy:?}");
}

#[test]
fn a_latency_tenant_is_held_against_itself_alone() {
    let mut registry = registry(&[]);
    let [serve, _] = pair(&mut registry, None);
    assert_eq!(process(&registry, 50).requests, None, "it has said nothing yet");
    let all = spans(90, 1_100, 2_500);
    serve.say_experience(board::Experience { all, alone: spans(8, 0, 0), alone_needed: 100 });
    let half = process(&registry, 50).requests.unwrap();
    assert_eq!((half.all.count, half.slowdown_p50_permille, half.alone.p99_ns), (90, None, None));
    assert_eq!(half.alone_samples.words(), "not known yet (8 of 100)");
    serve.say_experience(board::Experience { all, alone: spans(180, 1_000, 2_000), alone_needed: 100 });
    let told = process(&registry, 50).requests.unwrap();
    assert_eq!((told.slowdown_p50_permille, told.slowdown_p99_permille), (Some(1_100), Some(1_250)));
    assert_eq!((told.alone.count, told.alone.p99_ns), (180, Some(2_000_000)));
    assert_eq!(process(&registry, 60).requests, None);
}

/// On a card a tenant was once said to take 187 ms alone, because its first requests had loaded modules.
#[test]
fn an_objective_that_is_kept_is_never_unattainable() {
    let mut registry = registry(&[]);
    let [serve, _] = pair(&mut registry, Some(Nanos::from_millis(20)));
    let (all, alone) = (spans(90, 4_000, 6_900), spans(100, 5_000, 187_000));
    serve.say_experience(board::Experience { all, alone, alone_needed: 100 });
    let now = board::now();
    assert_eq!(registry.look(now), Vec::<String>::new());
    let told = process(&registry, 50);
    assert_eq!((told.unattainable_p99_ns, told.objective.as_deref()), (None, Some("kept")));
    assert!(!registry.report(now).sentences.iter().any(|sentence| sentence.contains("even alone")));
    serve.say_experience(board::Experience { all: spans(90, 4_000, 26_900), alone, alone_needed: 100 });
    assert_eq!(process(&registry, 50).objective.as_deref(), Some("unattainable"));
}

#[test]
fn an_objective_that_cannot_be_kept_is_said_once_to_the_log_and_always_in_the_report() {
    let mut registry = registry(&[]);
    let [serve, _] = pair(&mut registry, Some(Nanos::from_millis(1)));
    assert_eq!(process(&registry, 50).unattainable_p99_ns, None);
    let both = spans(190, 1_000, 2_000);
    serve.say_experience(board::Experience { all: both, alone: both, alone_needed: 100 });
    let now = board::now();
    let said = registry.look(now);
    assert!(said[0].starts_with("serve (50) cannot keep its objective even alone"), "{said:?}");
    assert!(said[0].contains("below 1 ms and is 2 ms alone") && said.len() == 1, "{said:?}");
    assert_eq!(registry.look(now + Nanos::from_millis(500)), Vec::<String>::new());
    assert_eq!(process(&registry, 50).unattainable_p99_ns, Some(2_000_000));
    let sentences = registry.report(now).sentences;
    assert!(sentences.iter().any(|sentence| sentence.contains("even alone")), "{sentences:?}");
    registry.change("serve", Wish { slo: Some(None), ..Wish::default() }).unwrap();
    assert_eq!(process(&registry, 50).unattainable_p99_ns, None);
}

#[test]
fn why_a_best_effort_tenant_does_not_run_is_reported() {
    let mut registry = registry(&[]);
    let [serve, train] = pair(&mut registry, None);
    assert_eq!(process(&registry, 60).decision, None);
    let index = |why| u8::try_from(policy::Why::ALL.iter().position(|one| *one == why).unwrap()).unwrap();
    for why in policy::Why::ALL {
        train.say_decision(index(why), Nanos(7));
        let told = process(&registry, 60).decision.unwrap();
        assert_eq!((told.why.as_str(), told.longest_ns), (why.name(), Some(7)));
        assert!(!told.reason.is_empty());
    }
    train.say_decision(0, Nanos::MAX);
    assert_eq!(process(&registry, 60).decision.unwrap().longest_ns, None);
    train.say_decision(250, Nanos::MAX);
    assert_eq!(process(&registry, 60).decision, None, "a reason of another version");
    serve.say_decision(0, Nanos::ZERO);
    assert_eq!(process(&registry, 50).decision, None);
}

/// A seat of a tenant, and what it counts on it.
fn seated(registry: &mut Registry, pid: i32, registration: &Registration) -> (Ticket, board::Seat) {
    let (ticket, granted) = registry.register(&peer(5, pid), registration, SeatedWith::Everybody).unwrap();
    let seat = registry.tables[&EVERYBODYS].board.sit(granted.place).unwrap();
    (ticket, seat)
}

fn launches(registry: &mut Registry) -> Vec<(String, Class, u64)> {
    let observed = registry.observe(board::now());
    let tenants = observed.gpus[0].tenants.iter();
    tenants.map(|tenant| (tenant.name.clone(), tenant.class, tenant.figures.launches)).collect()
}

#[test]
fn what_an_ended_process_counted_stays_its_tenants() {
    let mut registry = registry(&[]);
    let train = registration(1, "train");
    let (first, one) = seated(&mut registry, 50, &train);
    let best_effort = Class::BestEffort;
    assert_eq!(launches(&mut registry), [("train".to_owned(), best_effort, 0)], "from the beginning");
    let (second, two) = seated(&mut registry, 51, &train);
    one.tally().launches.add(10);
    two.tally().launches.add(5);
    assert_eq!(launches(&mut registry)[0].2, 15);
    one.tally().launches.add(1);
    one.tally().farewells.add(1);
    registry.leave(first, End::Gone, board::now());
    assert_eq!(launches(&mut registry)[0].2, 16, "what was counted last, too");
    registry.leave(second, End::Gone, board::now());
    let observed = registry.observe(board::now());
    let tenant = &observed.gpus[0].tenants[0];
    assert_eq!((tenant.figures.launches, &tenant.now), (16, &None));
    assert_eq!(observed.disconnects, Disconnects { exit: 1, death: 1, expelled: 0 });
    seated(&mut registry, 52, &registration(2, "train")).1.tally().launches.add(4);
    assert_eq!(launches(&mut registry)[0].2, 20, "under the same name it goes on");
}

#[test]
fn what_was_counted_in_a_class_stays_there() {
    let mut registry = registry(&[]);
    let (_, seat) = seated(&mut registry, 50, &registration(1, "train"));
    seat.tally().launches.add(10);
    registry.change("train", Wish { class: Some(Class::Latency), ..Wish::default() }).unwrap();
    seat.tally().launches.add(3);
    let wanted = [("train".to_owned(), Class::Latency, 3), ("train".to_owned(), Class::BestEffort, 10)];
    let mut found = launches(&mut registry);
    found.sort_by_key(|(_, _, launches)| *launches);
    assert_eq!(found, wanted);
    assert_eq!(registry.observe(board::now()).gpus[0].clients.latency, 1);
}

fn stranger(pid: u32) -> crate::report::Stranger {
    crate::report::Stranger {
        pid,
        user: 1000,
        user_name: Some("alice".to_owned()),
        command: "python3".to_owned(),
        memory_bytes: None,
        active: None,
        gpu_permille: None,
        under_ebb: Some(false),
        class: None,
        daemon: None,
    }
}

/// A latency tenant beside somebody without ebb is not alone, and the board is where it learns of that.
#[test]
fn a_stranger_at_work_is_told_on_the_board() {
    let mut registry = registry(&[]);
    let [serve, _] = pair(&mut registry, None);
    let begin = board::now();
    let mut see = |active, at: u64| {
        let processes = Some(vec![crate::report::Stranger { active, ..stranger(61) }]);
        let survey = crate::nvml::Survey::from([(GPU, crate::nvml::Seen { index: None, processes })]);
        registry.take_survey(crate::nvml::Found { survey, at: Some(begin + Nanos(at)) });
        serve.board().stranger_seen(begin)
    };
    assert_eq!(see(None, 1), None, "nobody can tell");
    assert_eq!(see(Some(false), 2), None);
    assert_eq!(see(Some(true), 3), Some(begin));
    let seen = serve.board().stranger_seen(begin + Nanos::from_millis(60_000));
    assert!(seen < Some(begin + Nanos::from_millis(20_000)), "{seen:?}");
}

#[test]
fn processes_that_are_no_tenants_are_counted_where_they_are_known() {
    let mut registry = registry(&[]);
    seated(&mut registry, 50, &registration(1, "train"));
    assert_eq!(registry.observe(board::now()).gpus[0].unmanaged, None);
    let processes = Some([50, 60, 61].map(stranger).to_vec());
    registry.survey.insert(GPU, crate::nvml::Seen { index: Some(3), processes });
    let report = registry.report(board::now());
    let pids = |report: &crate::report::Report| {
        report.gpus[0].strangers.as_ref().map(|all| all.iter().map(|one| one.pid).collect::<Vec<_>>())
    };
    assert_eq!(pids(&report), Some(vec![60, 61]));
    let words = "waits for: pid 60 python3 (user alice), not under ebb; pid 61";
    assert!(report.sentences.iter().any(|sentence| sentence.contains(words)), "{:?}", report.sentences);
    let observed = registry.observe(board::now());
    assert_eq!((observed.gpus[0].index, observed.gpus[0].unmanaged), (Some(3), Some(2)));
    registry.survey.insert(GPU, crate::nvml::Seen { index: Some(3), processes: None });
    assert_eq!(pids(&registry.report(board::now())), None);
    assert_eq!(registry.observe(board::now()).gpus[0].unmanaged, None);
}

#[test]
fn what_the_daemon_does_to_a_board_is_no_tampering() {
    let mut registry = registry(&[]);
    assert_eq!(registry.next_inspection(), None, "there is nobody to look after");
    let claim = Registration { class: Class::Latency, slo: Some(Nanos(0)), ..registration(1, "a\u{7}b") };
    let (first, _) = registry.register(&peer(5, 50), &claim, SeatedWith::Everybody).unwrap();
    registry.register(&peer(6, 60), &registration(2, &"x".repeat(80)), SeatedWith::Everybody).unwrap();
    assert!(registry.next_inspection().is_some());
    let pause = Wish { paused: Some(true), weight: Some(7), ..Wish::default() };
    registry.change("60", pause).unwrap();
    assert_eq!(registry.inspect(board::now()), [] as [String; 0]);
    let mut other = Configuration::plain(Scope::User, 1000);
    other.token.quantum = Nanos::from_millis(7);
    other.policy.kind = model::Kind::Fair;
    other.ceilings.rules = vec![Rule { subject: Subject::Everyone, ceiling: low() }];
    registry.configure(other);
    registry.leave(first, End::Gone, board::now());
    registry.look(board::now());
    assert_eq!(registry.inspect(board::now()), [] as [String; 0]);
    assert_eq!(registry.report(board::now()).gpus[0].tampered, 0);
}

#[test]
fn what_somebody_wrote_who_has_left_is_put_back_soon() {
    let mut registry = registry(&[]);
    let (liar, _) = registry.register(&peer(5, 50), &registration(1, "liar"), SeatedWith::Everybody).unwrap();
    registry.register(&peer(6, 60), &registration(2, "victim"), SeatedWith::Everybody).unwrap();
    let now = board::now();
    registry.inspect(now);
    assert_eq!(registry.next_inspection(), Some(now + Nanos::from_millis(2_000)));
    registry.leave(liar, End::Gone, now);
    let due = registry.next_inspection().unwrap();
    assert_eq!(due, now + Nanos::from_millis(100));
    registry.inspect(due);
    assert_eq!(registry.next_inspection(), Some(due + Nanos::from_millis(2_000)), "once for each who leaves");
}

#[test]
fn what_a_tenant_writes_over_its_board_is_put_back_and_told() {
    let mut registry = registry(&[]);
    let (ticket, granted) =
        registry.register(&peer(5, 50), &registration(1, "liar"), SeatedWith::Everybody).unwrap();
    let (other, _) =
        registry.register(&peer(6, 60), &registration(2, "victim"), SeatedWith::Everybody).unwrap();
    let file = registry.file(ticket).unwrap().try_clone_to_owned().unwrap();
    let size = usize::try_from(rustix::fs::fstat(&file).unwrap().st_size).unwrap();
    for byte in [0xff_u8, 0x01, 0x00, 0x55] {
        assert_eq!(rustix::io::pwrite(&file, &vec![byte; size], 0), Ok(size));
        let said = registry.inspect(board::now());
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].contains("liar (process 50 of user 5)") && said[0].contains("its settings"),
            "{said:?}"
        );
        assert_eq!(registry.inspect(board::now()), [] as [String; 0], "all is as it was, of {byte:#x}");
        let board = Board::open(file.as_fd()).unwrap();
        assert_eq!((board.gpu(), board.settings()), (GPU, board::Settings::default()));
    }
    let report = registry.report(board::now());
    assert_eq!(report.gpus[0].tampered, 4);
    let said = |words: &str| report.sentences.iter().any(|sentence| sentence.contains(words));
    assert!(said("4 times was put back") && said("victim (60) has lost its seat"), "{:?}", report.sentences);
    // There is room again for those who lost theirs.
    for ticket in [ticket, other] {
        registry.leave(ticket, End::Gone, board::now());
    }
    let (_, again) =
        registry.register(&peer(6, 60), &registration(2, "victim"), SeatedWith::Everybody).unwrap();
    assert_eq!(again.place.seat, granted.place.seat);
    assert_eq!(process(&registry, 60).name, "victim");
    assert_eq!(registry.inspect(board::now()), [] as [String; 0]);
}

#[test]
fn who_cannot_be_seated_with_others_has_a_board_of_its_own() {
    let mut registry = registry(&[]);
    let mut seat = |user, pid, with| {
        let (ticket, _) = registry.register(&peer(user, pid), &registration(1, "train"), with).unwrap();
        registry.sittings[&ticket].board
    };
    let own = |user| BoardKey { gpu: GPU, user: Some(user) };
    assert_eq!(seat(5, 50, SeatedWith::OwnUser), own(5));
    assert_eq!(seat(6, 60, SeatedWith::OwnUser), own(6));
    assert_eq!(seat(5, 51, SeatedWith::OwnUser), own(5));
    assert_eq!(seat(6, 61, SeatedWith::Everybody), EVERYBODYS);
    registry.configuration.board_per_user = true;
    registry.configure(Configuration::plain(Scope::User, 1000));
    let (ticket, _) =
        registry.register(&peer(7, 70), &registration(1, "train"), SeatedWith::Everybody).unwrap();
    assert_eq!(registry.sittings[&ticket].board, own(7), "as it was when the daemon began");
    let report = registry.report(board::now());
    let users: Vec<_> = report.gpus.iter().map(|gpu| (gpu.user, gpu.processes.len())).collect();
    assert_eq!(users, [(None, 1), (Some(5), 2), (Some(6), 1), (Some(7), 1)]);
    assert_eq!(registry.observe(board::now()).gpus.len(), 1, "to monitoring it is one GPU");
}

#[test]
fn occupants_are_told_of_other_terms_once_and_of_the_newest() {
    let mut registry = registry(&[]);
    let (ticket, granted) =
        registry.register(&peer(5, 50), &registration(1, "train"), SeatedWith::Everybody).unwrap();
    registry.register(&peer(5, 51), &registration(2, "other"), SeatedWith::Everybody).unwrap();
    assert_eq!(granted.domain, Domain::Isolated);
    assert_eq!(registry.take_untold(), [], "the answer has told them");
    for weight in [7, 8] {
        registry.change("train", Wish { weight: Some(weight), ..Wish::default() }).unwrap();
    }
    let terms = Terms { weight: 8, ..granted.terms };
    assert_eq!(registry.take_untold(), [(ticket, terms)]);
    assert_eq!(registry.take_untold(), []);
    registry.change("train", Wish { paused: Some(true), ..Wish::default() }).unwrap();
    registry.leave(ticket, End::Gone, board::now());
    assert_eq!(registry.take_untold(), []);
}
