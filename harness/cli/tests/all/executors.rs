//! The lifting, the walk over grids and the simulated GPU read the same assembly. Each returns an answer, or
//! the name of a missing feature. The snapshot lists the entry points without an answer from all three, and
//! the modules that cannot be read.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use entry_point::{AnalysisOptions, DeadlinePredicate, Problem};
use plan::{Buffer, BufferBinding, BufferMemory, Device, DeviceError, Interface, Kernel, Plan, Queue};
use spirv_reader::{SpirvModule, assemble_text};

/// Number of calls of the stop function before a lifting or a walk is stopped.
const MAX_STOP_CALLS: u32 = 20;

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/shaders").join(folder);
    let mut files: Vec<PathBuf> = walkdir::WalkDir::new(folder)
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|file| file.extension().is_some_and(|own| own == extension))
        .collect();
    files.sort();
    files
}

/// Returns the feature that a refusal names; limits and missing inputs count as answers.
fn missing_feature(problem: &Problem) -> String {
    match problem {
        Problem::Unsupported(what) => format!("lacks {what}"),
        Problem::Malformed(what) => format!("malformed: {what}"),
        _ => "answers".to_owned(),
    }
}

/// Returns the answers of the lifting, the walk and the simulated GPU for an entry point.
fn answers(module: &SpirvModule, words: &[u32], entry: &str) -> [String; 3] {
    let stop_calls = AtomicU32::new(0);
    let options = AnalysisOptions {
        entry: Some(entry.to_owned()),
        grid: Some([1, 1, 1]),
        unroll: Some(1),
        deadline: Some(DeadlinePredicate::new(move || {
            stop_calls.fetch_add(1, Ordering::Relaxed) > MAX_STOP_CALLS
        })),
        ..AnalysisOptions::default()
    };
    let lifted = symbolic::lift(module, &options).err();
    let walked = walk::analyze_grid(module, &options).map_or_else(Some, |report| report.refusal);
    let answer_of = |refusal: Option<entry_point::Refusal>| {
        refusal.map_or_else(|| "answers".to_owned(), |refusal| missing_feature(&refusal.what))
    };
    let bindings: Vec<BufferBinding> = module
        .descriptors()
        .into_iter()
        .map(|(set, binding)| BufferBinding { set, binding, ..BufferBinding::default() })
        .collect();
    let count = bindings.len() as u32;
    let interface = Interface { entry: entry.to_owned(), bindings, layers: [1, 1], ..Interface::default() };
    let kernel = Kernel {
        words: words.to_vec(),
        bindings: count,
        push_constant_bytes: 128,
        interface: Some(interface),
        ..Kernel::default()
    };
    let buffer = Buffer { words: 4096, memory: BufferMemory::Shared, name: "memory" };
    let plan = Plan {
        kernels: vec![kernel],
        buffers: (0..count).map(|_| buffer.clone()).collect(),
        queues: vec![Queue { family: 0 }],
        ..Plan::default()
    };
    let simulated = match sim::SimDevice::new(sim::Fault::None).prepare(&plan) {
        Err(DeviceError::Unsupported(what)) => what.replace("simulated GPU ", ""),
        Err(DeviceError::InvalidPlan(what)) if what.contains("malformed") => what,
        // This test binds every resource as a buffer. The device checks that after lowering the module.
        Err(DeviceError::InvalidPlan(_)) => "answers".to_owned(),
        Err(other) => other.to_string(),
        Ok(_) => "answers".to_owned(),
    };
    [answer_of(lifted), answer_of(walked), simulated]
}

/// Returns a line for each entry point without an answer from every executor.
fn table(file: &Path, words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let name = file.file_name().unwrap().to_string_lossy();
    let module = match entry_point::read_module(&bytes) {
        Ok(module) => module,
        Err(error) => return format!("{name}: read {}\n", error.what),
    };
    let mut table = String::new();
    for entry in module.entry_points() {
        let [lift, walk, sim] = answers(&module, words, entry);
        if [&lift, &walk, &sim].iter().any(|answer| *answer != "answers") {
            writeln!(table, "{name} {entry}: lift {lift}; walk {walk}; sim {sim}").unwrap();
        }
    }
    table
}

#[test]
fn every_executor_reads_assembly() {
    let words = |file: &PathBuf| assemble_text(&fs::read_to_string(file).unwrap()).unwrap().words;
    let all: String = files("", "spvasm").iter().map(|file| table(file, &words(file))).collect();
    insta::assert_snapshot!(all);
}
