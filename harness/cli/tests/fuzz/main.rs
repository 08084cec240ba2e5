//! Fuzzing of every parser and reader with mutated inputs: none may panic or exceed the time limit.
//!
//! A target tries `VK_LITMUS_FUZZ_CASES` inputs, or runs for `VK_LITMUS_FUZZ_SECONDS` seconds (`ci/soak`:
//! minutes), from the seed in `PROPTEST_RNG_SEED`. Accepted inputs join the corpus. Each input is first
//! written to a file, so that it survives a crash of the process. `inputs/TARGET/` has inputs that failed
//! once; they are tried first.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod mutate;

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use litmus::corpus::{self, EmbeddedFile};
use litmus::{Dialect, Test};
use mutate::Numbers;
use plan::{Buffer, BufferMemory, Device, Kernel, Plan, Queue};
use results::expectation::Expectations;
use results::wire::PlanRecord;
use rustix::time::{ClockId, clock_gettime};

/// Default number of inputs per target.
const CASES: u64 = 2_000;
/// Largest processor time for one input.
const MAX_PROCESSOR_TIME: Duration = Duration::from_secs(2);

type Mutate = fn(&mut Numbers, &[Vec<u8>]) -> Vec<u8>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Fuzzes a target: `read` returns true if it accepts an input.
fn fuzz(name: &str, mut corpus: Vec<Vec<u8>>, mutate: Mutate, read: impl Fn(&[u8]) -> bool) {
    assert!(!corpus.is_empty(), "{name}: a corpus");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
    let mut file = File::create(&path).unwrap();
    let mut slowest = Duration::ZERO;
    let mut attempt = |input: &[u8]| -> bool {
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(input))
            .unwrap();
        let before = processor_time();
        let read = catch_unwind(AssertUnwindSafe(|| read(input)));
        let took = processor_time() - before;
        slowest = slowest.max(took);
        let report_input =
            || format!("{}: keep it in inputs/{name}/: {:?}", path.display(), String::from_utf8_lossy(input));
        assert!(read.is_ok(), "{name}: a panic, on the input in {}", report_input());
        assert!(took <= MAX_PROCESSOR_TIME, "{name}: {took:?}, on the input in {}", report_input());
        read.unwrap_or_default()
    };
    let inputs_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/inputs").join(name);
    for entry in std::fs::read_dir(inputs_folder).into_iter().flatten() {
        attempt(&std::fs::read(entry.unwrap().path()).unwrap());
    }
    for input in &corpus {
        assert!(attempt(input), "{name}: the corpus is taken: {}", String::from_utf8_lossy(input));
    }
    let corpus_size = corpus.len().max(16);
    let seed = variable("PROPTEST_RNG_SEED").unwrap_or(1);
    let seed = blake3::hash(format!("{seed} {name}").as_bytes());
    let mut numbers = Numbers::new(u64::from_le_bytes(seed.as_bytes()[..8].try_into().unwrap()));
    let time = variable("VK_LITMUS_FUZZ_SECONDS").map(Duration::from_secs);
    let cases = variable("VK_LITMUS_FUZZ_CASES").unwrap_or(CASES);
    let (since, mut tried, mut taken) = (Instant::now(), 0_u64, 0_u64);
    while time.map_or(tried < cases, |time| since.elapsed() < time) {
        let input = mutate(&mut numbers, &corpus);
        tried += 1;
        if attempt(&input) {
            taken += 1;
            // Half of the corpus is original: fragments are often accepted, but rarely find bugs.
            if corpus.len() < 2 * corpus_size {
                corpus.push(input);
            }
        }
    }
    println!("{name}: {tried} inputs, {taken} of them taken; the slowest took {slowest:?}");
}

fn embedded_files() -> Vec<EmbeddedFile> {
    corpus::tests().into_iter().chain(corpus::model_only_tests()).chain(corpus::progress_tests()).collect()
}

/// Returns an evenly spaced sample of a list, to limit the corpus.
fn sample<T>(all: Vec<T>, max_length: usize) -> Vec<T> {
    let step = all.len().div_ceil(max_length).max(1);
    all.into_iter().step_by(step).collect()
}

fn texts(dialect: Dialect) -> Vec<Vec<u8>> {
    let is_of_dialect = |entry: &EmbeddedFile| {
        litmus::parse(entry.text, &entry.path).is_ok_and(|test| test.dialect == dialect)
    };
    let texts = embedded_files()
        .into_iter()
        .filter(is_of_dialect)
        .map(|entry| entry.text.as_bytes().to_vec())
        .collect();
    sample(texts, 120)
}

fn tests(most: usize) -> Vec<Test> {
    sample(
        embedded_files().iter().filter_map(|entry| litmus::parse(entry.text, &entry.path).ok()).collect(),
        most,
    )
}

/// Returns true if a text is a test. The printed form must be a test, too.
fn is_test(text: &str, name: &str) -> bool {
    let Ok(test) = litmus::parse(text, name) else { return false };
    let printed = litmus::print(&test);
    let reparsed = litmus::parse(&printed, name);
    assert!(reparsed.is_ok(), "the printed form is not a test: {printed}");
    true
}

fn fuzz_text(name: &str, corpus: Vec<Vec<u8>>, read: impl Fn(&str) -> bool) {
    fuzz(name, corpus, mutate::text, |bytes| std::str::from_utf8(bytes).is_ok_and(&read));
}

#[test]
fn native_tests() {
    fuzz_text("litmus", texts(Dialect::Vulkan), |text| is_test(text, "x.litmus"));
}

#[test]
fn hsa_tests() {
    fuzz_text("hsa", texts(Dialect::Hsa), |text| is_test(text, "x.litmus"));
}

#[test]
fn khronos_tests() {
    let converted = tests(400).into_iter().filter_map(|test| litmus::convert::to_khronos(&test).ok());
    let corpus = converted.map(|test| litmus::print(&test).into_bytes()).collect();
    fuzz_text("khronos", sample(corpus, 60), |text| is_test(text, "x.test"));
}

#[test]
fn conditions() {
    let test = litmus::parse(corpus::tests()[0].text, "x.litmus").unwrap();
    let question = test.question.as_ref().unwrap().to_text(&test);
    let condition =
        question.trim_start_matches(['~']).trim_start_matches("exists").trim().as_bytes().to_vec();
    fuzz_text("condition", vec![condition], |text| litmus::parse_condition(text, "x", &test).is_ok());
}

#[test]
fn suites() {
    let corpus = corpus::suites().iter().map(|suite| suite.text.as_bytes().to_vec()).collect();
    fuzz_text("suite", corpus, |text| litmus::Suite::parse(text, "x.txt").is_ok());
}

#[test]
fn models() {
    let names = model::Model::shipped_models().iter().map(|(name, _)| *name);
    let corpus = names.filter_map(model::Model::shipped_text).map(|text| text.as_bytes().to_vec()).collect();
    fuzz_text("cat", corpus, |text| model::Model::from_text("x", text, &|_| None).is_ok());
}

#[test]
fn stress_files() {
    let corpus = ["lavapipe", "swiftshader", "gpu", "small", "sim", "throughput"];
    let corpus = corpus.map(|name| runner::Stress::preset(name).unwrap().to_toml().unwrap().into_bytes());
    fuzz_text("stress", corpus.into(), |text| runner::Stress::from_toml("x.toml", text).is_ok());
}

#[test]
fn expectation_files() {
    let mut corpus =
        vec![b"# why\nsb/SB+rlx-rlx,Fail,0.5\n\nmp/.*\\.wg # https://example.org\niriw/\n".to_vec()];
    for entry in std::fs::read_dir(root().join("results/expectations")).unwrap() {
        corpus.push(std::fs::read(entry.unwrap().path()).unwrap());
    }
    fuzz("expectations", corpus, mutate::text, |bytes| {
        Expectations::parse("sim-fails.txt", "sim-fails.txt", bytes).is_ok()
    });
}

/// Returns a baseline with its first lines: a plan and some verdicts.
fn baseline() -> (PlanRecord, Vec<u8>) {
    let text = std::fs::read_to_string(root().join("results/baselines/sim-0.1.0.jsonl")).unwrap();
    let mut lines: Vec<&str> = text.lines().take(4).collect();
    let mut header: results::wire::BaselineRecord = serde_json::from_str(lines.remove(0)).unwrap();
    header.plan.tests.truncate(6);
    header.plan.plan = header.plan.hash().unwrap();
    (header.plan, (lines.join("\n") + "\n").into_bytes())
}

#[test]
fn plans() {
    let (plan, lines) = baseline();
    let header = serde_json::json!({ "schema": "vk-litmus/baseline/1", "plan": plan });
    let corpus = vec![[header.to_string().into_bytes(), b"\n".to_vec(), lines].concat()];
    fuzz("plan", corpus, mutate::text, |bytes| {
        results::read::read_lines(Path::new("x.jsonl"), bytes, None).is_ok_and(|found| found.plan.is_some())
    });
}

#[test]
fn journals() {
    let (plan, lines) = baseline();
    // Records without checksums reach the later checks; then records with checksums.
    fuzz("journal", vec![lines.clone()], mutate::text, |bytes| {
        let found = results::read::read_lines(Path::new("run.jsonl"), bytes, Some(plan.clone()));
        found.is_ok_and(|found| found.lines.len() == 3)
    });
    let mut summed = plan.clone();
    summed.schema = results::wire::PLAN_SCHEMA.to_owned();
    let read = results::read::read_lines(Path::new("run.jsonl"), &lines[..], Some(plan.clone())).unwrap();
    let sealed = read.lines.iter().flat_map(|line| results::journal::seal_record(line).unwrap()).collect();
    fuzz("journal-with-sums", vec![sealed], mutate::text, |bytes| {
        let found = results::read::read_lines(Path::new("run.jsonl"), bytes, Some(summed.clone()));
        found.is_ok_and(|found| {
            let is_subset = found.lines.iter().all(|line| read.lines.contains(line));
            assert!(is_subset, "an altered verdict was read");
            found.lines.len() == 3
        })
    });
}

/// Returns kernels with their number of bindings.
fn kernels() -> Vec<shaders::CompiledKernel> {
    let device = sim::SimDevice::new(sim::Fault::None);
    let stress = runner::Stress::for_device(device.identity(), device.capabilities()).unwrap();
    let config = stress.kernel_config(device.capabilities());
    tests(150).iter().filter_map(|test| shaders::compile(test, &config).ok()).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

#[test]
fn modules() {
    let kernels = kernels();
    let corpus = kernels.iter().map(|kernel| bytes(&kernel.words)).collect();
    let bindings = &kernels[0].bindings;
    fuzz("spirv", corpus, mutate::module, |input| {
        let words = words(input);
        if shaders::parse_module(&words).is_err() {
            return false;
        }
        let _ = shaders::disassemble(&words);
        let _ = kernel_oracle::lift::lift(&words, bindings);
        true
    });
}

#[test]
fn modules_of_the_simulated_gpu() {
    let device = sim::SimDevice::new(sim::Fault::None);
    let kernels = kernels();
    let plain = |kernel: &&shaders::CompiledKernel| kernel.images.is_empty() && !kernel.uses_addresses;
    let corpus: Vec<Vec<u8>> = kernels.iter().filter(plain).map(|kernel| bytes(&kernel.words)).collect();
    let max_bindings = kernels.iter().map(|kernel| kernel.bindings.len()).max().unwrap_or(1) as u32;
    let prepared = |input: &[u8]| {
        let kernel = Kernel {
            words: words(input),
            bindings: max_bindings,
            push_constant_bytes: 128,
            ..Kernel::default()
        };
        let buffer = Buffer { words: 64, memory: BufferMemory::Readback, name: "b" };
        let plan = Plan {
            kernels: vec![kernel],
            buffers: vec![buffer; max_bindings as usize],
            queues: vec![Queue { family: 0 }],
            ..Plan::default()
        };
        device.prepare(&plan).is_ok()
    };
    fuzz("sim", corpus, mutate::module, prepared);
}

#[test]
fn archives() {
    use campaign::shader::archive::Archive;
    let archive = std::fs::read(root().join("harness/cli/tests/all/shaders/pipelines.foz")).unwrap();
    fuzz("archive", vec![archive], mutate::module, |input| {
        let mut source = std::io::Cursor::new(input);
        let archive = Archive::scan(&mut source);
        archive.members.iter().all(|member| archive.read_module(&mut source, member).is_ok())
    });
}

#[test]
fn scripts() {
    use campaign::shader::script::{amber, offload_test, shader_test};
    let amber_text = "#!amber\nSHADER compute s GLSL\nvoid main() {}\nEND\nBUFFER b DATA_TYPE vec3<float> SIZE 2 FILL 1\n\
        BUFFER c DATA_TYPE int8 STD140 SIZE 3 SERIES_FROM 1 INC_BY 2\nPIPELINE compute p\nATTACH s SPECIALIZE 1 AS uint32 2\n\
        BIND BUFFER b AS storage DESCRIPTOR_SET 0 BINDING 1\nEND\nRUN p 1 2 3\nEXPECT b IDX 4 TOLERANCE 1% EQ 1 2\n\
        EXPECT b EQ_BUFFER b\nREPEAT 2\nRUN p 1 1 1\nEND";
    fuzz_text("amber", vec![amber_text.into()], |text| amber::parse(text).is_ok());
    let test = "[compute shader]\nvoid main() {}\n[test]\nssbo 0:1 12\nssbo 0:2 subdata mat2x3 4 1 2 3\nubo 1 vec3 0 1 2 3\n\
        push layout std140\nuniform i64vec2 8 -1 2\ncompute 1 1 1\ntolerance 1%\nprobe ssbo dvec2 0:2 0 ~= 1.5 2";
    fuzz_text("shader-test", vec![test.into()], |text| shader_test::parse(text).is_ok());
    let test = include_str!("../all/scripts/scale.test");
    fuzz_text("offload-test", vec![test.into()], |text| offload_test::parse(text).is_ok());
}

#[test]
fn requests() {
    let body = r#"{"request":"catalogue"}"#;
    let kind = "Content-Type: application/json\r\nContent-Length: 23";
    let post = format!("POST /token/answer HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n{kind}\r\n\r\n{body}");
    let get = b"GET /token/main.js?x HTTP/1.1\r\nHost: localhost:8000\r\nAccept: */*\r\n\r\n".to_vec();
    fuzz("requests", vec![post.into_bytes(), get], mutate::text, |mut bytes| {
        serve::read_request(&mut bytes).is_ok_and(|request| request.body.len() <= serve::MAX_BODY_BYTES)
    });
}

#[test]
fn machine_texts() {
    let folder = root().join("harness/isa/tests/texts");
    let read =
        |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.unwrap().path()).unwrap();
    let texts: Vec<String> = std::fs::read_dir(folder).unwrap().map(read).collect();
    // A line with the name precedes each kernel.
    let kernels = texts.iter().flat_map(|text| text.split("=== ").filter_map(|part| part.split_once('\n')));
    let corpus = kernels.map(|(_, code)| code.as_bytes().to_vec()).collect();
    fuzz_text("machine-text", sample(corpus, 40), |text| isa::parse(text).is_ok());
}
