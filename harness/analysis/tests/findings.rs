//! Findings of grid walks: one kernel for each class, and near misses without a finding.

use entry_point::{AnalysisOptions, DeadlinePredicate, FindingKind, Refusal};
use model::{Budget, Model};
use repair::{ChangeKind, KernelChange};
use spirv_reader::SourcePosition;
use symbolic::ModelQuery;
use walk::RaceVerdict;

/// Returns a kernel of 64 invocations with the given body.
fn kernel_text(body: &str) -> String {
    include_str!("templates/findings.spvasm").replace("; BODY", body)
}

const BARRIER: &str = "OpControlBarrier %2 %2 %264\n";

fn walk_kernel(body: &str, workgroups: u32) -> Result<walk::GridReport, Refusal> {
    let module = entry_point::read_module(kernel_text(body).as_bytes())?;
    let mut options = AnalysisOptions {
        grid: Some([workgroups, 1, 1]),
        subgroup_size: Some(32),
        ..AnalysisOptions::default()
    };
    for binding in 0..2 {
        options.buffers.insert((0, binding), vec![0; 256].into());
    }
    walk::analyze_grid(&module, &options)
}

/// Returns the columns of a table, without comments and definitions, which are replaced.
fn rows(table: &str) -> impl Iterator<Item = Vec<String>> {
    let parts: Vec<(&str, &str)> = table.lines().filter_map(|line| line.split_once(" := ")).collect();
    let row = move |line: &str| {
        let replaced = parts
            .iter()
            .rev()
            .fold(line.to_owned(), |text, (name, part)| text.replace(&format!("{{{name}}}"), part));
        replaced.split('\t').map(|column| column.replace("; ", "\n")).collect()
    };
    table.lines().filter(|line| !line.starts_with('#') && !line.contains(" := ")).map(row)
}

#[test]
fn kernels_of_the_table_have_their_findings() {
    let mut wrong = Vec::new();
    for columns in rows(include_str!("findings.tsv")) {
        let body = format!("{}\n", columns[2]);
        let module = entry_point::read_module(kernel_text(&body).as_bytes()).unwrap();
        let rules = lint::lint(&module);
        let rules = rules.iter().map(|lint| lint.rule.name());
        let report = walk_kernel(&body, columns[1].parse().unwrap()).unwrap();
        let mut all: Vec<&str> = report.findings.iter().map(|finding| finding.kind.name()).collect();
        all.dedup();
        all.extend(rules);
        if all.join(" ") != columns[0] {
            wrong.push(format!("{}, not {columns:?}", all.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A race of equal stores has a separate cause and is last, unless other invocations store other values there.
#[test]
fn stores_of_one_value_have_their_own_cause() {
    let body = "%one = OpAccessChain %to_u32 %flags %0 %0\n%two = OpAccessChain %to_u32 %flags %0 %2\n\
                %part = OpUDiv %u32 %me %2\nOpStore %one %3\nOpStore %two %part\n";
    let report = walk_kernel(body, 1).unwrap();
    let causes: Vec<&str> = report.findings.iter().map(|finding| finding.cause.name()).collect();
    assert_eq!(causes, ["unordered", "equal-stores"]);
}

#[test]
fn elements_and_calls_are_named() {
    let message = |body: &str| {
        let report = walk_kernel(body, 1).expect("a walk");
        report.findings.first().map(|finding| finding.message.clone()).unwrap_or_default()
    };
    let beyond = message("OpStore %beyond %me\n");
    assert_eq!(beyond, "a write beyond the end of an array in `shared`: `shared[64]`, of 64 elements");
    let far = "%far = OpAccessChain %to_u32 %flags %0 %64\n%old = OpAtomicIAdd %u32 %far %1 %0 %1\n";
    assert_eq!(message(far), "an atomic at byte 256 of `flags`, which has 256: `flags[64]`");
    // Accesses in two calls of one function name the calls.
    let shared = "%f = OpFunction %void None %of\n%at = OpFunctionParameter %u32\n%in = OpLabel\n\
                  %there = OpAccessChain %to_shared %shared %at\nOpStore %there %at\nOpReturn\nOpFunctionEnd\n";
    let text =
        kernel_text("%one = OpFunctionCall %void %f %me\n%two = OpFunctionCall %void %f %near\n") + shared;
    let text = text.replace("%function =", "%of = OpTypeFunction %void %u32\n%function =");
    let line = |of: &str| text.lines().position(|line| line.starts_with(of)).expect("a line") + 1;
    let module = entry_point::read_module(text.as_bytes()).expect("a module");
    let report = walk::analyze_grid(&module, &AnalysisOptions::default()).expect("a walk");
    let message = &report.findings[0].message;
    let calls = [line("%one ="), line("%two =")].map(|line| format!("writes it in the call of line {line}"));
    assert!(calls.iter().all(|call| message.contains(call)), "{message}");
}

/// A lock that protects no accesses.
const LOCK: &str = "OpBranch %loop\n%loop = OpLabel\nOpLoopMerge %done %more None\nOpBranch %body\n%body = OpLabel\n\
                    %was = OpAtomicCompareExchange %u32 %flag %1 %0 %0 %1 %0\n%taken = OpINotEqual %bool %was %0\n\
                    OpBranchConditional %taken %again %done\n%again = OpLabel\nOpBranch %more\n%more = OpLabel\nOpBranch %loop\n\
                    %done = OpLabel\nOpMemoryBarrier %1 %72\nOpAtomicStore %flag %1 %0 %0\n";

/// Returns the lock, acquired only if `condition` is true.
fn conditional_lock(condition: &str) -> String {
    format!(
        "{condition}OpSelectionMerge %m None\nOpBranchConditional %may %t %m\n%t = OpLabel\n{LOCK}OpBranch %m\n%m = OpLabel\n"
    )
}

#[test]
fn deadlocks_name_the_whole_cycle() {
    // Returns the message with workgroup numbers, and the access at each position.
    let hangs = |body: &str, workgroups: u32| {
        let report = walk_kernel(body, workgroups).expect("a walk");
        let describe = |finding: walk::GridFinding| {
            assert_eq!(finding.kind, FindingKind::Hang, "{finding:?}");
            let does: Vec<Option<bool>> = finding.at.iter().map(|at| at.writes).collect();
            (finding.message.replace("invocation (0,0,0) of workgroup ", ""), does)
        };
        report.findings.into_iter().map(describe).collect::<Vec<_>>()
    };
    // The first invocation of a workgroup acquires and releases locks, in an order that depends on the
    // workgroup.
    let take = |number: u32, lock: &str| {
        format!(
            "OpBranch %loop{number}\n%loop{number} = OpLabel\nOpLoopMerge %done{number} %more{number} None\nOpBranch %body{number}\n\
             %body{number} = OpLabel\n%was{number} = OpAtomicCompareExchange %u32 {lock} %1 %0 %0 %1 %0\n\
             %taken{number} = OpINotEqual %bool %was{number} %0\nOpBranch %more{number}\n%more{number} = OpLabel\n\
             OpBranchConditional %taken{number} %loop{number} %done{number}\n%done{number} = OpLabel\n"
        )
    };
    let of_lanes = |inside: &str| {
        format!(
            "OpSelectionMerge %m None\nOpBranchConditional %first %t %m\n%t = OpLabel\n{inside}OpBranch %m\n%m = OpLabel\n"
        )
    };
    let back = |lock: &str| format!("OpAtomicStore {lock} %1 %0 %0\n");
    let places = |count: u32| {
        let own =
            format!("%ring = OpUMod %u32 %next_wg %{count}\n%a = OpAccessChain %to_u32 %flags %0 %wg\n");
        format!("%next_wg = OpIAdd %u32 %wg %1\n{own}%b = OpAccessChain %to_u32 %flags %0 %ring\n")
    };
    let ring = |count| {
        [places(count), of_lanes(&[take(1, "%a"), take(2, "%b"), back("%a"), back("%b")].concat())].concat()
    };
    let wait = |me: u32, lock: u32| format!("({me},0,0) waits for `flags[{lock}]`, which ({lock},0,0) took");
    let circle = |count: u32| (0..count).map(|me| wait(me, (me + 1) % count)).collect::<Vec<_>>().join("; ");
    for count in [2, 3] {
        let both = [None, Some(true)].repeat(count as usize);
        assert_eq!(hangs(&ring(count), count), [(format!("deadlock: {}", circle(count)), both)]);
    }
    // A common lock order cannot deadlock.
    let ordered = of_lanes(&[take(1, "%flag"), take(2, "%out"), back("%out"), back("%flag")].concat());
    assert_eq!(hangs(&ordered, 3), []);
    // A lock that its holder acquires twice, and a lock that is never released.
    let again = of_lanes(&[take(1, "%flag"), take(2, "%flag")].concat());
    let itself = "deadlock: (0,0,0) waits for `flags[0]`, which it took itself".to_owned();
    assert_eq!(hangs(&again, 1), [(itself, vec![None, Some(true)])]);
    let leaked = "(1,0,0) loops forever: no invocation changes the values that the loop reads, `flags[0]`, which (0,0,0) took before it ended";
    assert_eq!(hangs(&of_lanes(&take(1, "%flag")), 2), [(leaked.to_owned(), vec![None, Some(true)])]);
    // The holder of the lock waits at a barrier for an invocation that waits for the lock.
    let two = "%other = OpIEqual %bool %me %63\n%first_or_last = OpLogicalOr %bool %first %other\n";
    let meet = of_lanes(&take(1, "%flag")).replace("%first %t", "%first_or_last %t");
    let (message, _) = &hangs(&[two, &meet, BARRIER, &back("%flag")].concat(), 1)[0];
    assert!(message.contains("waits at a barrier for invocation (63,0,0) of workgroup (0,0,0)"), "{message}");
    assert!(
        message.contains("invocation (63,0,0) of workgroup (0,0,0) waits for `flags[0]`, which (0,0,0) took"),
        "{message}"
    );
}

#[test]
fn cheap_schedules_are_tried_in_large_numbers() {
    // The first invocation of each workgroup acquires a lock correctly: no finding, but the result depends on
    // the schedule.
    let first = "%may = OpIEqual %bool %me %0\n";
    let locked = kernel_text(&conditional_lock(first)).replace("LocalSize 64", "LocalSize 4");
    let module = entry_point::read_module(locked.as_bytes()).expect("a module");
    let of = |workgroups| AnalysisOptions { grid: Some([workgroups, 1, 1]), ..AnalysisOptions::default() };
    let tried = |report: Result<walk::GridReport, Refusal>| {
        let report = report.expect("a walk");
        assert!(report.is_schedule_dependent && report.findings.is_empty(), "{:?}", report.findings);
        let why = report.refusal.map(|why| why.to_string()).unwrap_or_default();
        (report.verdict, report.schedules, why)
    };
    let clean = |orders| (RaceVerdict::Clean, orders, String::new());
    assert_eq!(tried(walk::analyze_grid(&module, &of(2))), clean(12));
    assert_eq!(tried(walk::analyze_grid_thoroughly(&module, &of(2))), clean(1_000));
    // The first schedules run even if one exceeds the budget of the cheap ones.
    assert_eq!(tried(walk::analyze_grid_thoroughly(&module, &of(160))), clean(12));
    // The requested number of schedules is executed or refused.
    let options_with =
        |schedules, workgroups| AnalysisOptions { schedules: Some(schedules), ..of(workgroups) };
    assert_eq!(tried(walk::analyze_grid_thoroughly(&module, &options_with(30, 16))), clean(30));
    let short = |options: &AnalysisOptions| {
        let evaluations = std::sync::atomic::AtomicU32::new(0);
        let deadline = DeadlinePredicate::new(move || {
            evaluations.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 5
        });
        tried(walk::analyze_grid_thoroughly(
            &module,
            &AnalysisOptions { deadline: Some(deadline), ..options.clone() },
        ))
    };
    let (verdict, orders, why) = short(&of(16));
    assert!(verdict == RaceVerdict::Clean && (1..12).contains(&orders) && why.is_empty(), "{orders}: {why}");
    let (verdict, orders, why) = short(&options_with(30, 16));
    assert_eq!(verdict, RaceVerdict::Undecided);
    assert!(why.contains(&format!("{orders} of the 30 requested schedules were explored")), "{why}");
}

#[test]
fn large_grids_are_walked_whole() {
    // 256 workgroups of 64: 16,384 invocations that each write one element.
    let own = "%start = OpIMul %u32 %wg %64\n%at = OpIAdd %u32 %start %me\n%place = OpAccessChain %to_u32 %flags %0 %at\n";
    let module = entry_point::read_module(kernel_text(&[own, "OpStore %place %me\n"].concat()).as_bytes())
        .expect("a module");
    let mut options = AnalysisOptions { grid: Some([256, 1, 1]), ..AnalysisOptions::default() };
    options.buffers.insert((0, 1), vec![0; 4 * 64 * 256].into());
    let report = walk::analyze_grid(&module, &options).expect("a walk");
    assert_eq!((report.findings.len(), report.is_schedule_dependent), (0, false), "{:?}", report.findings);
    options.buffers.insert((0, 1), vec![0; 4 * 64 * 256 - 4].into());
    let report = walk::analyze_grid(&module, &options).expect("a walk");
    assert_eq!(report.findings[0].kind, FindingKind::OutOfBounds);
    assert_eq!(report.findings[0].at[0].invocation.to_string(), "(63,0,0) of workgroup (255,0,0)");
}

#[test]
fn values_that_are_not_computed_are_refused_in_branches() {
    // Derivatives are unknown values.
    let derived = "%f = OpConvertUToF %f32 %me\n%d = OpDPdx %f32 %f\n%i = OpConvertFToU %u32 %d\n";
    let walk = |used: &str| {
        let text = kernel_text(&["OpStore %mine %me\n", derived, used].concat());
        walk::analyze_grid(
            &entry_point::read_module(text.as_bytes()).expect("a module"),
            &AnalysisOptions::default(),
        )
    };
    assert!(walk("").expect("a walk, for which it decides nothing").findings.is_empty());
    let decides = "%chosen = OpAccessChain %to_u32 %flags %0 %i\nOpStore %chosen %me\n";
    let refused = walk(decides).expect_err("a refusal");
    assert!(refused.to_string().contains("an index is computed from floats"), "{refused}");
}

/// Nine invocations of three workgroups take eight slots, with annotated sizes and contents.
#[test]
fn annotations_set_the_initial_state_of_a_walk() {
    let text = include_str!("shaders/slots-too-few.spvasm");
    let walk = |text: &str| {
        walk::analyze_grid(
            &entry_point::read_module(text.as_bytes()).expect("a module"),
            &AnalysisOptions::default(),
        )
    };
    assert_eq!(walk(text).expect("a walk").findings[0].kind, FindingKind::Race);
    let fewer = text.replace("@Config: 3, 1, 3", "@Config: 2, 2, 2");
    assert!(walk(&fewer).expect("a walk").findings.is_empty());
    // Two invocations write if the initial value is 5.
    let compared = include_str!("../../cli/tests/all/shaders/annotated/unknown-compared.spvasm");
    let found = |number: u32| {
        let walked = walk(&format!("; @Input: %x = {number}\n{compared}")).expect("a walk");
        walked.findings.iter().map(|found| found.kind).collect::<Vec<_>>()
    };
    assert_eq!((found(5), found(4)), (vec![FindingKind::Race], Vec::new()));
    // An unannotated input may have any value.
    let open = text.replace("; @Input: %C = {{0}}\n", "");
    let refused = walk(&open).expect_err("a refusal");
    assert!(refused.to_string().contains("`%C` without @Input, which a grid needs"), "{refused}");
}

/// Returns the findings of `check` other than races: class, message and lines.
fn lifted_findings(body: &str) -> Result<Vec<(FindingKind, String, SourcePosition)>, Refusal> {
    let module =
        entry_point::read_module(kernel_text(body).replace("LocalSize 64", "LocalSize 2").as_bytes())?;
    let options =
        AnalysisOptions { grid: Some([1, 1, 1]), subgroup_size: Some(2), ..AnalysisOptions::default() };
    let summary = |found: &entry_point::LiftFinding| (found.kind(), found.message.clone(), found.at[0].place);
    Ok(symbolic::lift(&module, &options)?.findings.iter().map(summary).collect())
}

/// An undefined result is reported if it is observed, by the walk and by the model; an unused one is not
/// reported.
#[test]
fn undefined_results_are_reported_if_observed() {
    let table: Vec<Vec<String>> = rows(include_str!("undefined-results.tsv")).collect();
    let rows_of = |kind: &'static str| table.iter().filter(move |columns| columns[0] == kind);
    let (operations, uses) = (rows_of("operation"), rows_of("use"));
    for (operation, words) in operations.map(|columns| (&columns[1], &columns[2])) {
        for (using, is_reported) in uses.clone().map(|columns| (&columns[1], columns[2] == "reported")) {
            let body = format!(
                "%nothing = OpISub %u32 %me %me\n%wide = OpIAdd %u32 %63 %1\n\
                 %four = OpCompositeConstruct %v4 %me %me %me %me\n%got = {operation}\n{using}\n"
            );
            let kind = match operation.contains("Vector") {
                true => FindingKind::OutOfBounds,
                false => FindingKind::UndefinedBehaviour,
            };
            let all = walk_kernel(&body, 1).unwrap().findings;
            let walk_findings: Vec<_> =
                all.iter().map(|found| (found.kind, found.message.as_str(), found.at[0].place)).collect();
            let line =
                1 + kernel_text(&body).lines().position(|line| line.starts_with("%got")).unwrap() as u32;
            let expected = if is_reported {
                vec![(kind, words.as_str(), SourcePosition::Line(line))]
            } else {
                Vec::new()
            };
            assert_eq!(walk_findings, expected, "{body}");
            let mut check_findings = lifted_findings(&body).unwrap();
            // One finding per invocation.
            check_findings.dedup();
            let check_findings: Vec<_> = check_findings
                .iter()
                .map(|(kind, message, place)| (*kind, message.as_str(), *place))
                .collect();
            assert_eq!(check_findings, expected, "{body}");
        }
    }
}

#[test]
fn undefined_results_of_floats_are_reported() {
    const FLOATS: &str = include_str!("templates/floats.spvasm");
    for columns in rows(include_str!("undefined-results.tsv")).filter(|columns| columns[0] == "float") {
        let body =
            format!("{FLOATS}\n%got = {}\n%bits = OpBitcast %u32 %got\nOpStore %out %bits\n", columns[1]);
        let findings = walk_kernel(&body, 1).unwrap().findings;
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        let expected = if columns[2] == "defined" { &[][..] } else { &[&columns[2]][..] };
        assert_eq!(messages, expected, "{}", columns[1]);
    }
}

/// Pointers into arrays, compared and subtracted: `to` and `from` point to elements 5 and 2.
#[test]
fn pointers_are_compared_and_subtracted() {
    let messages_of = |test: &str| {
        let body = format!(
            "%five = OpIAdd %u32 %3 %2\n%to = OpAccessChain %to_shared %shared %five\n%from = OpAccessChain %to_shared %shared %2\n\
             %again = OpInBoundsPtrAccessChain %to_shared %from %3\n%null = OpCopyObject %to_shared %nowhere\n\
             %on = OpAccessChain %to_u32 %data %0 %five\n%off = OpAccessChain %to_u32 %flags %0 %2\n{test}\n\
             OpSelectionMerge %end None\nOpBranchConditional %is %yes %end\n%yes = OpLabel\nOpUnreachable\n%end = OpLabel\n"
        );
        let text = kernel_text(&body).replace("LocalSize 64", "LocalSize 2");
        let text = text.replace("%true = ", "%nowhere = OpConstantNull %to_shared\n%true = ");
        let module = entry_point::read_module(text.as_bytes()).unwrap();
        let options = AnalysisOptions { grid: Some([1, 1, 1]), ..AnalysisOptions::default() };
        let mut walked: Vec<_> =
            walk::analyze_grid(&module, &options).unwrap().findings.into_iter().map(|f| f.message).collect();
        let mut checked: Vec<_> =
            symbolic::lift(&module, &options).unwrap().findings.into_iter().map(|f| f.message).collect();
        walked.dedup();
        checked.dedup();
        assert_eq!(walked, checked, "{test}");
        walked.join(", ")
    };
    for columns in rows(include_str!("pointers.tsv")) {
        assert_eq!(messages_of(&columns[0]), columns[1], "{columns:?}");
    }
}

/// If several blocks have one binding, a race and its fix name the accessed block.
#[test]
fn the_accessed_block_of_a_shared_binding_is_named() {
    let body = "%there = OpAccessChain %to_u32 %words %0 %me\n%beside = OpAccessChain %to_u32 %words %0 %near\n\
                OpStore %there %me\nOpMemoryBarrier %1 %72\nOpControlBarrier %2 %2 %264\n%got = OpLoad %u32 %beside\n";
    let text = kernel_text(body).replace("LocalSize 64", "LocalSize 2");
    let text = text.replace(
        "OpDecorate %flags DescriptorSet 0\n",
        "OpDecorate %words DescriptorSet 0\nOpDecorate %words Binding 0\nOpDecorate %flags DescriptorSet 0\n",
    );
    let text = text
        .replace("%flags = OpVariable", "%words = OpVariable %to_block StorageBuffer\n%flags = OpVariable");
    let module = entry_point::read_module(text.as_bytes()).unwrap();
    let options = AnalysisOptions { grid: Some([1, 1, 1]), ..AnalysisOptions::default() };
    let report = walk::analyze_grid(&module, &options).unwrap();
    assert!(report.findings[0].message.contains("`words["), "{:?}", report.findings);
    let fixes = repair::fix_walk_findings(&module, &options, &report, &|| false);
    let declares_words = |changes: &[KernelChange]| {
        changes.iter().any(|change| match change.kind {
            ChangeKind::MakeCoherent { root, is_left_out: false } => {
                entry_point::accessed_variable::variable_label(&module, root) == "words"
            }
            _ => false,
        })
    };
    assert!(fixes.changes.iter().any(|changes| declares_words(changes)), "{:?}", fixes.changes);
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let query = ModelQuery {
        budget: Budget::default(),
        decide_race: true,
        decide_question: false,
        locate_race: true,
    };
    let options = AnalysisOptions { keep_all: true, ..options };
    let with_all_accesses = symbolic::lift(&module, &options).unwrap();
    let found = symbolic::answer_with_model(&with_all_accesses, &model, &query).unwrap().race_spot;
    assert!(found.as_ref().is_some_and(|found| found.element.starts_with("words[")), "{found:?}");
    let fix =
        repair::fix_races(&module, &options, &with_all_accesses, &model, found.as_ref(), &query).unwrap();
    assert!(declares_words(&fix.changes), "{:?}", fix.changes);
}

/// Both accesses of a copy can be made coherent, also if one variable is its target and another its source.
#[test]
fn copies_are_made_coherent() {
    let text = include_str!("shaders/message-copied.spvasm");
    let changes = |text: &str| {
        let module = entry_point::read_module(text.as_bytes()).unwrap();
        let options = AnalysisOptions { grid: Some([2, 1, 1]), ..AnalysisOptions::default() };
        let report = walk::analyze_grid(&module, &options).unwrap();
        assert_eq!(report.verdict, RaceVerdict::Racy, "{:?}", report.findings);
        let fixes = repair::fix_walk_findings(&module, &options, &report, &|| false);
        assert!(fixes.is_clean);
        let coherent_name = |change: KernelChange| match change.kind {
            ChangeKind::MakeCoherent { root, .. } => {
                entry_point::accessed_variable::variable_label(&module, root)
            }
            kind => format!("{kind:?}"),
        };
        fixes.changes.into_iter().flatten().map(coherent_name).collect::<Vec<String>>()
    };
    assert_eq!(changes(text), ["data"]);
    // The copy reads a second block, which another workgroup writes.
    let two = text.replace("OpCopyMemory %to_result %to_data", "OpCopyMemory %to_data %to_more").replace(
        "OpCopyMemory %to_data %one_word NonPrivatePointer None",
        "OpCopyMemory %to_data %one_word NonPrivatePointer None\nOpLine %file 9 0\nOpCopyMemory %to_more %one_word NonPrivatePointer None",
    );
    assert_eq!(changes(&two), ["more", "data"]);
}
