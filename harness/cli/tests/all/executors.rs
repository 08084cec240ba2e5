//! The lifting, the walk over grids and the simulated GPU read the same assembly: each answers, or names what it
//! lacks. The snapshot lists the entry points that not all of them answer, and the modules that are not read.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use frontend::{AnalysisOptions, Problem, SpirvModule, Until, assemble_text};
use plan::{Buffer, BufferBinding, BufferMemory, Device, DeviceError, Interface, Kernel, Plan, Queue};

/// The number of times that a lifting or a walk may ask whether to go on.
const PATIENCE: u32 = 20;

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

/// Returns what a refusal lacks; limits and missing inputs are no refusals of the module.
fn lacks(problem: &Problem) -> String {
    match problem {
        Problem::Unsupported(what) => format!("lacks {what}"),
        Problem::Malformed(what) => format!("malformed: {what}"),
        _ => "answers".to_owned(),
    }
}

/// Returns what the lifting, the walk and the simulated GPU say of an entry point.
fn answers(module: &SpirvModule, words: &[u32], entry: &str) -> [String; 3] {
    let asked = AtomicU32::new(0);
    let options = AnalysisOptions {
        entry: Some(entry.to_owned()),
        grid: Some([1, 1, 1]),
        unroll: Some(1),
        deadline: Some(Until::new(move || asked.fetch_add(1, Ordering::Relaxed) > PATIENCE)),
        ..AnalysisOptions::default()
    };
    let lifted = frontend::lift(module, &options).err();
    let walked = frontend::grid::analyze_grid(module, &options).map_or_else(Some, |report| report.refusal);
    let of = |refusal: Option<frontend::Refusal>| {
        refusal.map_or_else(|| "answers".to_owned(), |refusal| lacks(&refusal.what))
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
        // The plan of this test binds every resource as a buffer, which is checked once the module is lowered.
        Err(DeviceError::InvalidPlan(_)) => "answers".to_owned(),
        Err(other) => other.to_string(),
        Ok(_) => "answers".to_owned(),
    };
    [of(lifted), of(walked), simulated]
}

/// Returns a line for each entry point that not all executors answer.
fn table(file: &Path, words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let name = file.file_name().unwrap().to_string_lossy();
    let module = match frontend::read_module(&bytes) {
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
