//! Access masks from the text of a test to the steps of a plan: every dependency that a device is asked for has the words
//! that stand in the text at its place, in each way to put phases one after another.
#![expect(clippy::unwrap_used, reason = "a failure is the report")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use plan::{
    Accesses, Capabilities, Device, DeviceError, Identity, Memory, MemoryKind, Plan, Prepared, Stages, Step,
};
use runner::{Budget, Join, Settings, Stress, run_program};
use shaders::variant::Stage;
use shaders::{KernelConfig, Pipelines, Program, Variant};

/// A device that keeps what it is asked for, and refuses it.
#[derive(Default)]
struct Keeper {
    identity: Identity,
    capabilities: Capabilities,
    plan: RefCell<Plan>,
}

impl Device for Keeper {
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

fn words(accesses: Accesses) -> Words {
    accesses.names().map(str::to_owned).collect()
}

/// The cells of each column, without the header of the columns.
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

/// What the cells of a column that begin with a word name, those before its accesses (`leading`) or those behind.
fn named(column: &[String], word: &str, all: &str, leading: bool) -> Words {
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

/// What the text says before a phase: behind the accesses of the threads before, and before those of its own.
fn said(columns: &[Vec<String>], program: &Program, phase: usize, word: &str, all: &str) -> Words {
    let threads = |phase: usize| {
        let parts = program.phases[phase].parts.iter();
        parts.flat_map(|part| part.threads.clone()).map(|thread| usize::from(thread.0))
    };
    let behind = threads(phase - 1).flat_map(|thread| named(&columns[thread], word, all, false));
    let before = threads(phase).flat_map(|thread| named(&columns[thread], word, all, true));
    behind.chain(before).collect()
}

fn settings() -> Settings {
    Settings::new(Stress::preset("sim").unwrap(), Budget::instances(1), 1)
}

/// Checks the steps of a program and gives how many dependencies there were.
fn check(text: &str, program: &Program, test: &litmus::Test, join: Join) -> usize {
    let device = Keeper {
        capabilities: Capabilities {
            executes: true,
            subgroup_size: 4,
            max_workgroup_invocations: 128,
            max_workgroups: 65_535,
            max_storage_buffer_bytes: 1 << 27,
            max_storage_buffers: 64,
            max_push_constant_bytes: 256,
            ..Capabilities::default()
        },
        ..Keeper::default()
    };
    let memory = if program.hosts.is_some() { Memory::Mapped(MemoryKind::default()) } else { Memory::Device };
    let ran =
        run_program(&device, program, (join, memory), test, &settings(), &mut |_| ControlFlow::Continue(()));
    assert!(ran.is_err_and(|error| error.to_string().contains("running")), "{text}");
    let plan = device.plan.borrow();
    if program.hosts.is_some() {
        return check_batches(text, program, &plan);
    }
    let own = match program.kernels().next().map(|kernel| kernel.variant.stage) {
        Some(Stage::Vertex) => Stages::VERTEX,
        Some(Stage::Fragment | Stage::FragmentHelpers) => Stages::FRAGMENT,
        _ => Stages::COMPUTE,
    };
    for step in &plan.steps {
        if let Step::Dependency { stages, .. } = step {
            assert_eq!(*stages, (own, own), "the stages of the kernels, and no other: {text}");
        }
    }
    let dependencies: Vec<(Words, Words)> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Dependency { available, visible, .. } => Some((words(*available), words(*visible))),
            _ => None,
        })
        .collect();
    if matches!(join, Join::Semaphore | Join::Timeline) {
        assert_eq!(dependencies, [], "{text}");
        return 0;
    }
    let columns = columns(text);
    // Every queue has the same.
    let queues = program.queue_families.max(1) as usize;
    let each: Vec<&[(Words, Words)]> = dependencies.chunks(queues).collect();
    let mut published = false;
    for (phase, of_queues) in (1..program.phases.len()).zip(&each) {
        let (available, visible) = &of_queues[0];
        assert!(of_queues.iter().all(|one| one == &of_queues[0]), "{join}, before phase {phase}:\n{text}");
        let asked = said(&columns, program, phase, "avdevice", "shader_write");
        assert_eq!(*available, asked, "{join}, before phase {phase}:\n{text}");
        published |= asked.contains("shader_write") || asked.contains("memory_write");
        let mut asked = said(&columns, program, phase, "visdevice", "shader_read");
        let parts = program.phases[phase].parts.iter().flat_map(|part| &part.threads);
        let mut cells = parts.flat_map(|thread| &columns[usize::from(thread.0)]);
        let writes = cells.any(|cell| cell.starts_with("st.") || cell.starts_with("rmw."));
        // The API has no other way to put a write after another one.
        if published && writes && !asked.contains("memory_write") {
            asked.insert("shader_write".to_owned());
        }
        assert_eq!(*visible, asked, "{join}, before phase {phase}:\n{text}");
    }
    assert_eq!(dependencies.len(), queues * (program.phases.len() - 1), "{join}:\n{text}");
    each.len()
}

/// What the text says in a batch, which is a phase of a program with threads of the host: before its dispatch what its
/// threads begin with, behind it what they end with.
fn check_batches(text: &str, program: &Program, plan: &Plan) -> usize {
    let columns = columns(text);
    let batches: Vec<usize> =
        (0..plan.steps.len()).filter(|step| matches!(plan.steps[*step], Step::Batch { .. })).collect();
    assert_eq!(batches.len(), program.phases.len(), "{text}");
    let mut dependencies = 0;
    for (number, begin) in batches.iter().enumerate() {
        let steps = plan.steps[begin + 1..].iter();
        let steps: Vec<&Step> =
            steps.take_while(|step| !matches!(step, Step::Batch { .. } | Step::HostsEnd { .. })).collect();
        let first = steps.iter().position(|step| matches!(step, Step::Dispatch { .. })).unwrap();
        let last = steps.iter().rposition(|step| matches!(step, Step::Dispatch { .. })).unwrap();
        for (steps, leading) in [(&steps[..first], true), (&steps[last..], false)] {
            let (mut available, mut visible) = (Words::new(), Words::new());
            for step in steps {
                if let Step::Dependency { available: ours, visible: theirs, .. } = step {
                    available.extend(words(*ours));
                    visible.extend(words(*theirs));
                    dependencies += 1;
                }
            }
            let threads = program.phases[number].parts.iter().flat_map(|part| part.threads.clone());
            let columns: Vec<&Vec<String>> = threads.map(|thread| &columns[usize::from(thread.0)]).collect();
            let asked = |word, all| -> Words {
                columns.iter().flat_map(|column| named(column, word, all, leading)).collect()
            };
            let place = if leading { "before" } else { "behind" };
            assert_eq!(available, asked("avdevice", "shader_write"), "{place} batch {number}:\n{text}");
            assert_eq!(visible, asked("visdevice", "shader_read"), "{place} batch {number}:\n{text}");
        }
    }
    dependencies
}

#[test]
fn steps_have_the_masks_of_the_text() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/corpus");
    let config = KernelConfig { subgroup_size: 8, lanes: 8, ..KernelConfig::PLAIN };
    let (mut tests, mut masked, mut dependencies) = (0, 0, 0);
    for folder in std::fs::read_dir(corpus).unwrap() {
        let folder = folder.unwrap().path();
        for path in folder.is_dir().then(|| std::fs::read_dir(&folder).unwrap()).into_iter().flatten() {
            let text = std::fs::read_to_string(path.unwrap().path()).unwrap();
            if !text.contains("avdevice") && !text.contains("visdevice") {
                continue;
            }
            let test = litmus::parse(&text, "T").unwrap();
            for stage in [Stage::Compute, Stage::Vertex, Stage::Fragment] {
                let variant = Variant { stage, ..Variant::default() };
                let config = KernelConfig { variant, ..config };
                let Ok(program) = shaders::program(&test, &config, Pipelines::Merged) else { continue };
                tests += 1;
                masked += usize::from(text.contains("vdevice.") || text.contains("sdevice."));
                for join in Join::ALL.into_iter().filter(|join| join.refused(&program).is_none()) {
                    dependencies += check(&text, &program, &test, join);
                }
            }
        }
    }
    eprintln!("{tests} tests, {masked} with masks, {dependencies} dependencies");
    assert!(tests >= 60 && masked >= 45 && dependencies >= 180, "{tests} {masked} {dependencies}");
}
