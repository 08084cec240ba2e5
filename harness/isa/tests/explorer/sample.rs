//! The committed machine code, and its questions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use codegen::{CompiledKernels, Form, KernelSizes, form};
use isa::{AmdFamily, MachineProgram as Text, MachineQuestion};
use litmus::{Prediction, Test};
use shaders::{Program, Variant};

/// The sizes of the kernels: whole waves, of which one lane is followed.
const SIZES: KernelSizes = KernelSizes {
    subgroup_size: 64,
    max_workgroup_invocations: 1024,
    device_scope: true,
    lanes: 64,
    intel_split_barriers: false,
};

/// Families with texts, oldest first.
pub const FAMILIES: [&str; 5] = ["polaris10", "vega10", "navi21", "navi31", "gfx1201"];

/// Families without a disassembler; their text is in ACO's format.
pub const PRINTED: [&str; 1] = ["tahiti"];

/// The kernels of a test in one form for one family.
pub struct Sample {
    /// `mp/MP+rel-acq@merged`.
    pub name: String,
    pub texts: Vec<String>,
}

impl Sample {
    pub fn is_merged(&self) -> bool {
        self.name.ends_with("@merged")
    }
}

/// Returns the samples of a family in file order.
pub fn samples(family: &str) -> Vec<Sample> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/texts").join(format!("{family}.txt"));
    let all = std::fs::read_to_string(path).unwrap();
    let mut samples: Vec<Sample> = Vec::new();
    for block in all.split("=== ").filter(|block| !block.is_empty()) {
        let (heading, text) = block.split_once('\n').unwrap();
        let (name, number) = heading.rsplit_once('.').unwrap();
        match samples.last_mut().filter(|last| last.name == name) {
            Some(last) => last.texts.push(text.to_owned()),
            None => samples.push(Sample { name: name.to_owned(), texts: vec![text.to_owned()] }),
        }
        assert_eq!(number, (samples.last().unwrap().texts.len() - 1).to_string(), "{heading}");
    }
    samples
}

/// A test with its kernels and its prediction; the same for all families.
pub struct SampleTest {
    pub test: Test,
    pub program: Program,
    pub prediction: Prediction,
}

/// Returns all tests of the samples by name.
fn sample_tests() -> &'static BTreeMap<String, SampleTest> {
    static TESTS: OnceLock<BTreeMap<String, SampleTest>> = OnceLock::new();
    TESTS.get_or_init(|| {
        let model = model::Model::shipped("vulkan-nochains").unwrap().unwrap();
        samples(FAMILIES[0])
            .into_iter()
            .map(|sample| (sample.name.clone(), sample_test(&sample.name, &model)))
            .collect()
    })
}

fn sample_test(name: &str, model: &model::Model) -> SampleTest {
    let (id, form) = name.split_once('@').unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own_path = here.join("tests/litmus").join(format!("{id}.litmus"));
    let path = if own_path.exists() {
        own_path
    } else {
        here.join("../../litmus/corpus").join(format!("{id}.litmus"))
    };
    let text = std::fs::read_to_string(&path).unwrap();
    let test = litmus::parse(&text, id.rsplit('/').next().unwrap())
        .map_err(|error| format!("{name}: {error}"))
        .unwrap();
    let test = litmus::convert::guard_forced_reads(&test);
    let form: Form = form.parse().unwrap();
    let program = form::form_program(&test, form, Variant::default(), &SIZES).unwrap();
    let prediction = model::predict(&test, model, &model::PredictOptions::default()).unwrap();
    assert_eq!(prediction.race, litmus::Race::Free, "{name}");
    SampleTest { test, program, prediction }
}

/// Returns the question of a sample, with its texts or with others.
pub fn question(family: &str, sample: &Sample, texts: &[Text]) -> MachineQuestion {
    let sample_test = sample_tests().get(&sample.name).unwrap();
    build_question(family, sample, sample_test, texts, &sample_test.prediction)
}

fn build_question(
    family: &str,
    sample: &Sample,
    sample_test: &SampleTest,
    texts: &[Text],
    prediction: &Prediction,
) -> MachineQuestion {
    let family: AmdFamily = family.parse().unwrap();
    let kernels = CompiledKernels {
        test: &sample_test.test,
        program: &sample_test.program,
        programs: texts,
        family: &family,
        descriptors: vendor::radv().descriptors.unwrap(),
        subgroup_size: SIZES.subgroup_size,
    };
    codegen::machine_question(&kernels, prediction)
        .map_err(|error| format!("{}: {error}", sample.name))
        .unwrap()
}

/// Returns true if the test forbids the outcome of its question; otherwise no edit matters.
pub fn is_conformance(sample: &Sample) -> bool {
    let sample_test = sample_tests().get(&sample.name).unwrap();
    let condition = &sample_test.test.question.as_ref().unwrap().condition;
    let observables = &sample_test.prediction.observables;
    !sample_test.prediction.outcomes.iter().any(|(outcome, verdict)| {
        verdict.allowed && outcome.meets_condition(&sample_test.test, observables, condition)
    })
}

pub fn parsed(sample: &Sample) -> Vec<Text> {
    sample.texts.iter().map(|text| isa::parse(text).unwrap()).collect()
}

/// Returns the weak outcomes of a sample in the order of the question.
pub fn allowed_but_weak(family: &str, sample: &Sample, texts: &[Text]) -> Vec<Vec<u64>> {
    let sample_test = sample_tests().get(&sample.name).unwrap();
    let mut weak_prediction = sample_test.prediction.clone();
    for outcome in weak_prediction.outcomes.values_mut() {
        outcome.allowed &= outcome.weak;
    }
    build_question(family, sample, sample_test, texts, &weak_prediction)
        .allowed_outcomes
        .into_iter()
        .collect()
}
