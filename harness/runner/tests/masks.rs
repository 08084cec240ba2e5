//! Access masks from the text of a test to the steps of a plan: every dependency has the masks of the text at
//! its position, for each mechanism between phases.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure is the report")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use plan::{
    AccessMask, BufferMemory, Capabilities, Device, DeviceError, HostAct, Identity, MemoryKind, Plan,
    PlanStep, Prepared, StageMask,
};
use runner::{Join, RunBudget, RunSettings, Stress, run_program};
use shaders::variant::CarrierStage;
use shaders::{DispatchPhase, KernelConfig, Pipelines, Program, Variant};

/// A device that stores the plan and refuses it.
#[derive(Default)]
struct PlanRecorder {
    identity: Identity,
    capabilities: Capabilities,
    plan: RefCell<Plan>,
}

impl Device for PlanRecorder {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Prepared + '_>, DeviceError> {
        plan.validate()?;
        self.plan.replace(plan.clone());
        Err(DeviceError::Unsupported("running".into()))
    }
}

type Words = BTreeSet<String>;

fn access_names(accesses: AccessMask) -> Words {
    accesses.names().map(str::to_owned).collect()
}

/// Returns the cells of each column, without the header.
fn columns(text: &str) -> Vec<Vec<String>> {
    let table = text.lines().skip_while(|line| !line.trim_start().starts_with("P0@")).skip(1);
    let rows = table.take_while(|line| line.trim_end().ends_with(';'));
    let mut columns: Vec<Vec<String>> = Vec::new();
    for row in rows {
        for (number, cell) in row.trim_end().trim_end_matches(';').split('|').enumerate() {
            columns.resize_with(columns.len().max(number + 1), Vec::new);
            columns[number].extend(Some(cell.trim().to_owned()).filter(|cell| !cell.is_empty()));
        }
    }
    columns
}

fn is_memory(cell: &str) -> bool {
    ["ld", "st", "rmw", "membar", "cbar"].iter().any(|word| cell.starts_with(&format!("{word}.")))
}

/// Returns the arguments of a column's cells that start with a word: those before its accesses (`leading`),
/// or those after.
fn mask_names(column: &[String], word: &str, all: &str, leading: bool) -> Words {
    let mut found = Words::new();
    for (position, cell) in column.iter().enumerate() {
        let leads = column[position..].iter().any(|cell| is_memory(cell));
        match cell.strip_prefix(word) {
            Some(mask) if leads == leading => {
                found.extend(mask.split('.').filter(|word| !word.is_empty()).map(str::to_owned));
                if mask.is_empty() {
                    found.insert(all.to_owned());
                }
            }
            _ => {}
        }
    }
    found.remove("none");
    found
}

/// Returns the masks of the text before a phase: those after the accesses of earlier threads, and those
/// before the accesses of its threads.
fn masks_before(columns: &[Vec<String>], program: &Program, phase: usize, word: &str, all: &str) -> Words {
    let threads = |phase: usize| {
        let parts = program.phases[phase].kernels.iter();
        parts.flat_map(|part| part.threads.clone()).map(|thread| usize::from(thread.0))
    };
    let after = threads(phase - 1).flat_map(|thread| mask_names(&columns[thread], word, all, false));
    let before = threads(phase).flat_map(|thread| mask_names(&columns[thread], word, all, true));
    after.chain(before).collect()
}

/// Returns the plan of one instance on a device with these features.
fn plan_of(test: &litmus::Test, program: &Program, join: Join, features: &[plan::Feature]) -> Plan {
    let device = PlanRecorder {
        capabilities: Capabilities {
            executes: true,
            subgroup_size: 4,
            max_workgroup_invocations: 128,
            max_workgroups: 65_535,
            max_storage_buffer_bytes: 1 << 27,
            max_storage_buffers: 64,
            max_push_constant_bytes: 256,
            features: features.to_vec(),
            ..Capabilities::default()
        },
        ..PlanRecorder::default()
    };
    let memory = match program.hosts {
        Some(_) => BufferMemory::Mapped(MemoryKind::default()),
        None => BufferMemory::Device,
    };
    let settings = RunSettings::new(Stress::preset("sim").unwrap(), RunBudget::instances(1), 1);
    let ran =
        run_program(&device, program, join, memory, test, &settings, &mut |_| ControlFlow::Continue(()));
    assert!(ran.is_err_and(|error| error.to_string().contains("running")), "{}", test.name);
    device.plan.into_inner()
}

/// Checks the steps of a program; returns the number of dependencies.
fn check_dependencies(text: &str, program: &Program, test: &litmus::Test, join: Join) -> usize {
    let plan = plan_of(test, program, join, &[]);
    if program.hosts.is_some() {
        return check_batches(text, program, &plan);
    }
    let of = |phases: &[DispatchPhase]| {
        let kernels =
            phases.iter().flat_map(|phase| &phase.kernels).map(|part| match part.kernel.variant.stage {
                CarrierStage::Vertex => StageMask::VERTEX,
                CarrierStage::Fragment | CarrierStage::FragmentHelpers => StageMask::FRAGMENT,
                _ => StageMask::COMPUTE,
            });
        kernels.fold(StageMask::NONE, StageMask::with)
    };
    // The stages of the earlier phases, and those of each phase.
    let between: Vec<(StageMask, StageMask)> = (1..program.phases.len())
        .map(|number| (of(&program.phases[..number]), of(&program.phases[number..=number])))
        .collect();
    for step in &plan.steps {
        if let PlanStep::Dependency { stages, available, visible, .. } = step {
            let expected = |(before, after): &(StageMask, StageMask)| {
                (
                    before.with(StageMask::for_accesses(*available)),
                    after.with(StageMask::for_accesses(*visible)),
                )
            };
            assert!(
                between.iter().any(|own| expected(own) == *stages),
                "the stages of the kernels and of the accesses, and no other: {stages:?} {text}"
            );
        }
    }
    let dependencies: Vec<(Words, Words)> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            PlanStep::Dependency { available, visible, .. } => {
                Some((access_names(*available), access_names(*visible)))
            }
            _ => None,
        })
        .collect();
    if matches!(join, Join::Semaphore | Join::Timeline) {
        assert_eq!(dependencies, [], "{text}");
        return 0;
    }
    let columns = columns(text);
    // All queues have the same dependencies.
    let queues = program.queues.len();
    let each: Vec<&[(Words, Words)]> = dependencies.chunks(queues).collect();
    let mut published = false;
    for (phase, of_queues) in (1..program.phases.len()).zip(&each) {
        let (available, visible) = &of_queues[0];
        assert!(of_queues.iter().all(|one| one == &of_queues[0]), "{join}, before phase {phase}:\n{text}");
        let expected = masks_before(&columns, program, phase, "avdevice", "shader_write");
        assert_eq!(*available, expected, "{join}, before phase {phase}:\n{text}");
        published |= expected.contains("shader_write") || expected.contains("memory_write");
        let mut expected = masks_before(&columns, program, phase, "visdevice", "shader_read");
        let parts = program.phases[phase].kernels.iter().flat_map(|part| &part.threads);
        let mut cells = parts.flat_map(|thread| &columns[usize::from(thread.0)]);
        let writes = cells.any(|cell| cell.starts_with("st.") || cell.starts_with("rmw."));
        // The API can order a write after another one only with this mask.
        if published && writes && !expected.contains("memory_write") {
            expected.insert("shader_write".to_owned());
        }
        assert_eq!(*visible, expected, "{join}, before phase {phase}:\n{text}");
    }
    assert_eq!(dependencies.len(), queues * (program.phases.len() - 1), "{join}:\n{text}");
    each.len()
}

/// Checks each batch, which is a phase of a program with host threads. Before its dispatch it has the masks
/// at the start of its threads, after it those at their end.
fn check_batches(text: &str, program: &Program, plan: &Plan) -> usize {
    let columns = columns(text);
    let batches: Vec<usize> =
        (0..plan.steps.len()).filter(|step| matches!(plan.steps[*step], PlanStep::Batch { .. })).collect();
    assert_eq!(batches.len(), program.phases.len(), "{text}");
    let mut dependencies = 0;
    for (number, begin) in batches.iter().enumerate() {
        let steps = plan.steps[begin + 1..].iter();
        let steps: Vec<&PlanStep> = steps
            .take_while(|step| !matches!(step, PlanStep::Batch { .. } | PlanStep::HostsEnd { .. }))
            .collect();
        let first = steps.iter().position(|step| matches!(step, PlanStep::Dispatch { .. })).unwrap();
        let last = steps.iter().rposition(|step| matches!(step, PlanStep::Dispatch { .. })).unwrap();
        for (steps, leading) in [(&steps[..first], true), (&steps[last..], false)] {
            let (mut available, mut visible) = (Words::new(), Words::new());
            for step in steps {
                if let PlanStep::Dependency { available: ours, visible: theirs, .. } = step {
                    available.extend(access_names(*ours));
                    visible.extend(access_names(*theirs));
                    dependencies += 1;
                }
            }
            let threads = program.phases[number].kernels.iter().flat_map(|part| part.threads.clone());
            let columns: Vec<&Vec<String>> = threads.map(|thread| &columns[usize::from(thread.0)]).collect();
            let expected = |word, all| -> Words {
                columns.iter().flat_map(|column| mask_names(column, word, all, leading)).collect()
            };
            let place = if leading { "before" } else { "after" };
            assert_eq!(available, expected("avdevice", "shader_write"), "{place} batch {number}:\n{text}");
            assert_eq!(visible, expected("visdevice", "shader_read"), "{place} batch {number}:\n{text}");
        }
    }
    dependencies
}

const STAGES: [CarrierStage; 5] = [
    CarrierStage::Compute,
    CarrierStage::Vertex,
    CarrierStage::Fragment,
    CarrierStage::VertexFragment,
    CarrierStage::FragmentVertex,
];

#[test]
fn steps_have_the_masks_of_the_text() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/corpus");
    let config = KernelConfig { subgroup_size: 8, lanes: 8, ..KernelConfig::MINIMAL };
    let (mut tests, mut masked, mut dependencies) = (0, 0, 0);
    for folder in std::fs::read_dir(corpus).unwrap() {
        let folder = folder.unwrap().path();
        for path in folder.is_dir().then(|| std::fs::read_dir(&folder).unwrap()).into_iter().flatten() {
            let text = std::fs::read_to_string(path.unwrap().path()).unwrap();
            if !text.contains("avdevice") && !text.contains("visdevice") {
                continue;
            }
            let test = litmus::parse(&text, "T").unwrap();
            for stage in STAGES {
                let variant = Variant { stage, ..Variant::default() };
                let config = KernelConfig { variant, ..config };
                let Ok(program) = shaders::compile_program(&test, &config, Pipelines::Merged) else {
                    continue;
                };
                tests += 1;
                masked += usize::from(text.contains("vdevice.") || text.contains("sdevice."));
                for join in Join::ALL.into_iter().filter(|join| join.refusal_reason(&program).is_none()) {
                    dependencies += check_dependencies(&text, &program, &test, join);
                }
            }
        }
    }
    eprintln!("{tests} tests, {masked} with masks, {dependencies} dependencies");
    assert!(tests >= 60 && masked >= 45 && dependencies >= 180, "{tests} {masked} {dependencies}");
}

/// Parses one side of a call's dependency: `compute.transfer:shader_write`.
fn parse_side(text: &str) -> (StageMask, Words) {
    let (stages, accesses) = text.split_once(':').unwrap_or((text, ""));
    let named = stages.split('.').filter_map(StageMask::from_name);
    let stages = named.fold(StageMask::NONE, StageMask::with);
    (stages, accesses.split('.').filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

/// Each queue has exactly the calls of the text in order, with the same stages, accesses and semaphore
/// values.
#[test]
fn plans_have_the_calls_of_the_text() {
    let config = KernelConfig { subgroup_size: 8, lanes: 8, ..KernelConfig::MINIMAL };
    let (mut tests, mut calls, mut queues, mut hosts) = (0, 0, 0, 0);
    for entry in litmus::corpus::tests() {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let Ok(program) = shaders::compile_program(&test, &config, Pipelines::Merged) else { continue };
        if Join::Calls.refusal_reason(&program).is_some() {
            assert!(program.schedule.is_none(), "{}", entry.id);
            continue;
        }
        let plan = plan_of(&test, &program, Join::Calls, &[plan::Feature::TimelineSemaphore]);
        assert_eq!(plan.queues.len(), program.queues.len(), "{}", entry.id);
        // The calls of each queue between initialization and read-back, starting at the first dispatch of a
        // thread.
        let mut columns = columns(entry.text);
        columns.resize(test.threads.len(), Vec::new());
        let mut expected_calls: Vec<Vec<String>> = vec![Vec::new(); plan.queues.len()];
        hosts += check_acts(&test, &columns, &plan);
        let queue_of = |thread: &litmus::Thread| {
            thread.place.device_placement().map(|place| (place.queue_family, place.queue))
        };
        // Queues in the order of the threads.
        let mut named = Vec::new();
        for (thread, column) in test.threads.iter().zip(&columns) {
            let Some(own) = queue_of(thread) else { continue };
            let queue = named.iter().position(|other| *other == own).unwrap_or(named.len());
            if queue == named.len() {
                named.push(own);
            }
            expected_calls[queue]
                .extend(column.iter().filter(|cell| !cell.starts_with("transfer ")).cloned());
        }
        let mut set: BTreeMap<String, String> = BTreeMap::new();
        for (queue, cells) in expected_calls.iter().enumerate() {
            let mut steps = plan.steps.iter().filter(|step| {
                step.queue().0 as usize == queue
                    && matches!(
                        step,
                        PlanStep::Dependency { .. }
                            | PlanStep::Signal { .. }
                            | PlanStep::Wait { .. }
                            | PlanStep::Submit { .. }
                    )
            });
            for cell in cells {
                let words: Vec<&str> = cell.split_whitespace().collect();
                match words.as_slice() {
                    ["barrier", rest @ ..] | ["set", _, rest @ ..] => {
                        if let ["set", event, ..] = words.as_slice() {
                            set.insert((*event).to_owned(), rest.join(" "));
                        }
                        assert_dependency(steps.next().unwrap(), &rest.join(" "), cell);
                    }
                    ["await", event] => assert_dependency(steps.next().unwrap(), &set[*event], cell),
                    [word @ ("signal" | "wait"), _, value @ ..] => {
                        let expected = value.first().map_or(1, |value| value.parse().unwrap());
                        let found = match (steps.next().unwrap(), *word) {
                            (PlanStep::Signal { value, .. }, "signal")
                            | (PlanStep::Wait { value, .. }, "wait") => *value,
                            // No other call waits for it.
                            (PlanStep::Submit { .. }, "signal") => expected,
                            other => panic!("{other:?} for {cell}"),
                        };
                        assert_eq!(found, expected, "{}: {cell}", entry.id);
                    }
                    _ => continue,
                }
                calls += 1;
            }
            assert!(steps.next().is_none(), "{}: more calls than in the text", entry.id);
        }
        (tests, queues) = (tests + 1, queues + expected_calls.len());
    }
    eprintln!("{tests} tests, {calls} calls, {queues} queues, {hosts} calls of the host");
    assert!(tests >= 45 && calls >= 90 && queues >= 60 && hosts >= 15, "{tests} {calls} {queues} {hosts}");
}

/// Checks that host threads perform the calls of their columns between accesses; returns the number of calls.
fn check_acts(test: &litmus::Test, columns: &[Vec<String>], plan: &Plan) -> usize {
    let Some(hosts) = &plan.hosts else { return 0 };
    let of_host =
        test.threads.iter().zip(columns).filter(|(thread, _)| thread.place == litmus::ThreadPlace::Host);
    let mut calls = 0;
    for ((_, column), thread) in of_host.zip(&hosts.threads) {
        let words = column.iter().map(|cell| cell.split_whitespace().collect::<Vec<_>>());
        let expected: Vec<String> = words
            .filter_map(|words| match words.as_slice() {
                [word @ ("signal" | "wait"), semaphore, value] if !semaphore.starts_with('P') => {
                    Some(format!("{word} {value}"))
                }
                ["submit", ..] => Some("submit".to_owned()),
                ["wait", ..] => Some("fence".to_owned()),
                _ => None,
            })
            .collect();
        let done: Vec<String> = thread
            .acts
            .iter()
            .filter_map(|act| match act {
                HostAct::Execute(_) => None,
                HostAct::Submit(_) => Some("submit".to_owned()),
                HostAct::Wait(_) => Some("fence".to_owned()),
                HostAct::Signal { value, .. } => Some(format!("signal {value}")),
                HostAct::Await { value, .. } => Some(format!("wait {value}")),
            })
            .collect();
        assert_eq!(done, expected, "{}", test.name);
        calls += expected.len();
    }
    calls
}

fn assert_dependency(step: &PlanStep, text: &str, cell: &str) {
    let PlanStep::Dependency { stages, available, visible, .. } = step else { panic!("{step:?} for {cell}") };
    let (source, target) = text.split_once(" -> ").unwrap();
    let found = ((stages.0, access_names(*available)), (stages.1, access_names(*visible)));
    assert_eq!(found, (parse_side(source), parse_side(target)), "{cell}");
}

/// Ownership transfers match the test, and the next submission starts with the original owner.
#[test]
fn ownership_transfers_follow_the_test() {
    let transfers = |id: &str| -> Vec<String> {
        let entry = litmus::corpus::tests().into_iter().find(|entry| entry.id == id).unwrap();
        let test = litmus::parse(entry.text, &entry.path).unwrap();
        let program = shaders::compile_program(&test, &KernelConfig::MINIMAL, Pipelines::Merged).unwrap();
        let plan = plan_of(&test, &program, Join::Calls, &[plan::Feature::TimelineSemaphore]);
        let name = |buffer: plan::BufferId| plan.buffers[buffer.0 as usize].name;
        let describe = |step: &PlanStep| match step {
            PlanStep::Release { queue, buffer, to } => {
                Some(format!("{} > {}: {}", queue.0, to.0, name(*buffer)))
            }
            PlanStep::Acquire { queue, buffer, from } => {
                Some(format!("{} < {}: {}", queue.0, from.0, name(*buffer)))
            }
            _ => None,
        };
        plan.steps.iter().filter_map(describe).collect()
    };
    let on_separate_locations = |steps: &[&str]| -> Vec<String> {
        steps.iter().map(|step| format!("{step}: separate locations")).collect()
    };
    let there = ["0 > 1", "1 < 0"];
    let back = ["1 > 0", "0 < 1"];
    for id in
        ["MP+transfer", "MP+transfer.exclusive", "MP+transfer.beside", "MP+transfer.all", "WAW+transfer"]
    {
        assert_eq!(
            transfers(&format!("transfer/{id}")),
            on_separate_locations(&[there, back].concat()),
            "{id}"
        );
    }
    // The test returns the ownership.
    assert_eq!(transfers("transfer/Back+transfer"), on_separate_locations(&[there, back].concat()));
    // Another queue of the family reads last.
    assert_eq!(
        transfers("transfer/MP+transfer.queues"),
        on_separate_locations(&["0 > 1", "1 < 0", "2 > 0", "0 < 2"])
    );
    assert_eq!(transfers("transfer/MP+exclusive.queues"), on_separate_locations(&[]));
    assert_eq!(transfers("families/MP+signal-wait"), on_separate_locations(&[]));
}
