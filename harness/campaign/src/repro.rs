//! `repro`: a folder of files that reproduce the result of a test without this tool.

mod host;
mod readme;

use std::path::Path;
use std::time::Duration;

use explanation::Explained;
use litmus::convert::to_vulkan;
use litmus::glsl::{Glsl, to_glsl};
use litmus::{Dialect, Prediction, Test};
use model::{
    Budget, ExplainOptions, ExplanationAnswer, Model, PredictOptions, explain_outcome,
    predict_with_growing_bound,
};
use results::read::Results;
use results::wire::{CodegenVerdict, DeviceRecord, RunLine, VerdictWord};
use results::write::codegen;
use runner::RunVariant;
use shaders::Program;
use sim::SimDevice;

use crate::choice::{self, Chosen};
use crate::compilers::kernels::{GenerationTarget, bytes, numbered};
use crate::compilers::{beside, targets};
use crate::inputs::one;
use crate::kinds::litmus::planned::without_filter;
use crate::patience::patience;
use crate::source::{Loaded, Origin, TestSource};
use crate::{Failure, reasons};
use host::KERNEL;

/// The options of a bundle.
#[derive(Clone, Copy, Debug)]
pub struct Repro<'a> {
    /// A test argument; with results, the id of a test in them.
    pub test: Option<&'a str>,
    /// Results of runs, to include their counts.
    pub results: Option<&'a [Results]>,
    /// The device that the kernels are generated for.
    pub device: Option<&'a str>,
    /// The model for the verdicts.
    pub model: Option<&'a str>,
    /// The folder of Mesa installations for compile-only devices.
    pub mesa: Option<&'a Path>,
    /// Time limit for the prediction, and again for the explanation.
    pub timeout: Duration,
}

/// The test of a bundle.
struct ReproSubject {
    loaded: Loaded,
    variant: RunVariant,
    /// The judged program: the program that devices run, in the Vulkan memory model and without a filter.
    judged: Test,
    /// The text of the program.
    text: String,
}

/// A recorded verdict with its device.
struct RecordedVerdict {
    line: RunLine,
    device: Option<DeviceRecord>,
}

/// A file of the bundle.
#[derive(Clone, Debug)]
pub struct BundleFile {
    /// The file name.
    pub name: String,
    /// The content.
    pub bytes: Vec<u8>,
    what: String,
}

/// The files of a bundle.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    /// The files, in the order of the README.
    pub written: Vec<BundleFile>,
    /// Missing files, with the reason.
    pub lacking: Vec<String>,
}

impl Bundle {
    fn add(&mut self, name: impl Into<String>, what: impl Into<String>, bytes: &[u8]) {
        self.written.push(BundleFile { name: name.into(), bytes: bytes.to_vec(), what: what.into() });
    }

    fn lacks(&mut self, what: impl Into<String>) {
        self.lacking.push(what.into());
    }
}

/// Creates a bundle.
///
/// # Errors
/// If the test is invalid or cannot be compiled, or the results do not contain it.
pub fn repro(asked: &Repro<'_>) -> Result<Bundle, Failure> {
    let (loaded, seen) = match asked.results {
        Some(results) => {
            let (loaded, seen) = of_results(asked, results)?;
            (loaded, Some(seen))
        }
        None => (one(asked.test.unwrap_or_default())?, None),
    };
    let subject = ReproSubject::new(loaded)?;
    let file = &subject.loaded.source.file;
    let chosen = model(asked, seen.as_ref())?;
    if !chosen.model.judges(subject.judged.dialect) {
        return Err(Failure::input_message(format!(
            "{file}: the model does not support this dialect; choose another with `--model`"
        )));
    }
    let meant = meant(asked, seen.as_ref())?;
    let config = subject.variant.kernel_config(meant.config);
    let program = shaders::compile_program(&subject.device_test()?, &config, subject.variant.pipelines)
        .map_err(|error| subject.loaded.no_kernel(subject.variant.shader.stage, &error))?;
    let mut bundle = Bundle::default();

    bundle.add("test.litmus", "the test", subject.text.as_bytes());
    let prediction = predict(&subject, &chosen, asked)?;
    let explained = write_explanations(&mut bundle, &subject, &chosen, seen.as_ref(), asked);
    write_kernels(&mut bundle, &program)?;
    match host::write(&subject.judged, &program, prediction.as_ref(), &meant.stress) {
        Ok(text) => {
            bundle.add("host.c", "a program that runs the kernels and counts outcomes", text.as_bytes());
        }
        Err(why) => bundle.lacks(format!("No C program: {why}.")),
    }
    match to_vulkan(&subject.loaded.test).and_then(|test| to_glsl(&test)) {
        Ok(glsl) => {
            let file = format!("test.{}", glsl.file_extension());
            bundle.add(file.as_str(), "the test as GLSL, one instance of it", shader(&glsl).as_bytes());
        }
        Err(why) => bundle.lacks(format!("No GLSL: {why}.")),
    }
    let ended = machine_code(&mut bundle, &subject, &meant)?;
    let text = readme::write(&readme::ReadmeContent {
        subject: &subject,
        model: chosen.model.name(),
        prediction: prediction.as_ref(),
        seen: seen.as_ref(),
        device: meant.target.as_ref().map(|target| format!("{} ({})", target.name, target.driver())),
        ended: ended.as_deref(),
        explained: &explained,
        bundle: &bundle,
    });
    bundle.add("README.md", "this text", text.as_bytes());
    Ok(bundle)
}

/// Returns a GLSL shader with a comment that contains the command to check it.
pub fn shader(glsl: &Glsl) -> String {
    let claim = glsl.claim.as_ref().map(|claim| format!(" --assert '{claim}'")).unwrap_or_default();
    let (file, [x, y, z]) = (format!("FILE.{}", glsl.file_extension()), glsl.grid);
    let asked = match glsl.subgroup_size {
        Some(size) => format!("--grid {x} --subgroup-size {size}"),
        None => format!("--grid {x},{y},{z}"),
    };
    format!("// vk-litmus check {file} {asked}{claim}\n{}", glsl.source)
}

impl ReproSubject {
    fn new(loaded: Loaded) -> Result<ReproSubject, Failure> {
        let file = loaded.source.file.clone();
        let variant: RunVariant = loaded.source.variant.parse().map_err(Failure::input_error)?;
        let placed = loaded.placed()?;
        let said = shaders::effective_test(&placed, variant.shader)
            .map_err(|error| loaded.no_kernel(variant.shader.stage, &error))?;
        let text = match loaded.test.dialect {
            Dialect::Vulkan => loaded.text.clone(),
            Dialect::Khronos | Dialect::Hsa => litmus::print(&placed),
        };
        // Explanations refer to lines of the printed text.
        let judged = match loaded.test.dialect {
            Dialect::Vulkan => said,
            Dialect::Khronos | Dialect::Hsa => litmus::parse(&text, &file).unwrap_or(said),
        };
        Ok(ReproSubject { judged: without_filter(&judged), variant, text, loaded })
    }

    fn device_test(&self) -> Result<Test, Failure> {
        self.loaded.placed()
    }

    fn name(&self) -> &str {
        &self.loaded.source.id
    }
}

/// Selects a recorded verdict, preferring violations, and loads its test.
fn of_results(asked: &Repro<'_>, results: &[Results]) -> Result<(Loaded, RecordedVerdict), Failure> {
    let lines = results.iter().flat_map(|results| results.lines.iter().map(move |line| (results, line)));
    let named = |line: &RunLine| asked.test.is_none_or(|id| id == line.id);
    let here: Vec<(&Results, &RunLine)> = lines.filter(|(_, line)| named(line)).collect();
    let on_device = |line: &RunLine| asked.device.is_some_and(|device| device == line.device);
    let weight = |line: &RunLine| (line.verdict == VerdictWord::Violates, on_device(line));
    let best = here.iter().map(|(_, line)| weight(line)).max();
    let Some(best) = best else {
        let test = asked.test.unwrap_or("a test");
        return Err(Failure::input_message(format!("the results have no verdict for `{test}`")));
    };
    let best: Vec<&(&Results, &RunLine)> = here.iter().filter(|(_, line)| weight(line) == best).collect();
    let (results, line) = match best.as_slice() {
        [only] => **only,
        [first, ..] if asked.test.is_some() => **first,
        several => {
            let ids: Vec<&str> = several.iter().map(|(_, line)| line.id.as_str()).collect();
            let shown = ids.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
            let more = if ids.len() > MOST_NAMED { " …" } else { "" };
            return Err(Failure::input_message(format!(
                "name one of the tests of the results: {shown}{more}"
            )));
        }
    };
    let plan = results.plan.as_ref();
    let record = plan.and_then(|plan| plan.tests.iter().find(|test| test.id == line.id));
    let text = record.map(|record| record.text.clone()).unwrap_or_default();
    let loaded = if text.is_empty() {
        one(&line.id)?
    } else {
        let (id, variant) = line.id.split_once('@').unwrap_or((&line.id, ""));
        let source = TestSource {
            id: line.id.clone(),
            file: id.to_owned(),
            argument: line.id.clone(),
            variant: variant.to_owned(),
            origin: Origin::Embedded(id.to_owned()),
            text: Ok(text),
        };
        source.load().map_err(|rejected| rejected.failure)?
    };
    let device = plan.and_then(|plan| plan.devices.iter().find(|device| device.name == line.device));
    Ok((loaded, RecordedVerdict { line: line.clone(), device: device.cloned() }))
}

/// The number of tests listed in an error.
const MOST_NAMED: usize = 8;

/// Loads the requested model, else the shipped model of the recorded run.
fn model(asked: &Repro<'_>, seen: Option<&RecordedVerdict>) -> Result<Chosen, Failure> {
    match (asked.model, seen) {
        (Some(model), _) => choice::load(model),
        (None, Some(seen)) if Model::shipped(&seen.line.model).is_some() => choice::load(&seen.line.model),
        (None, _) => choice::load(Model::default_for(Dialect::Vulkan)),
    }
}

/// Returns the settings for the requested device, else for the device of the recorded run if it is available.
fn meant(asked: &Repro<'_>, seen: Option<&RecordedVerdict>) -> Result<GenerationTarget, Failure> {
    let named = |device: &str| {
        if device == SimDevice::NAME {
            return GenerationTarget::simulated();
        }
        GenerationTarget::of(targets::targets(&[device.to_owned()], asked.mesa)?.into_iter().next())
    };
    match (asked.device, seen) {
        (Some(device), _) => named(device),
        (None, Some(seen)) => named(&seen.line.device).or_else(|_| GenerationTarget::of(None)),
        (None, None) => GenerationTarget::of(None),
    }
}

fn predict(
    subject: &ReproSubject,
    chosen: &Chosen,
    asked: &Repro<'_>,
) -> Result<Option<Prediction>, Failure> {
    let stop = patience(asked.timeout);
    let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
    let predicted = predict_with_growing_bound(&subject.judged, &chosen.model, &options)
        .map_err(|error| Failure::input_message(format!("{}: {error}", subject.loaded.source.file)))?;
    Ok(Some(predicted).filter(|prediction| prediction.complete))
}

/// Explains the observed forbidden outcome, else the test's question. Returns the text, which is empty
/// without an answer.
fn write_explanations(
    bundle: &mut Bundle,
    subject: &ReproSubject,
    chosen: &Chosen,
    seen: Option<&RecordedVerdict>,
    asked: &Repro<'_>,
) -> String {
    let seen =
        seen.and_then(|seen| reasons::remarkable(&seen.line)).and_then(|text| reasons::condition(&text));
    let condition = match &seen {
        Some(text) => litmus::parse_condition(text, "outcome", &subject.judged).ok(),
        None => None,
    };
    let (half, stop) = (patience(asked.timeout / 2), patience(asked.timeout));
    let options = ExplainOptions {
        outcome: condition,
        verdict: Budget::until(&half),
        budget: Budget::until(&stop),
        ..ExplainOptions::default()
    };
    let explanation = match explain_outcome(&subject.judged, &chosen.model, &options) {
        Ok(explanation) if explanation.answer != ExplanationAnswer::Unknown => explanation,
        Ok(_) => {
            bundle.lacks("No explanation: the model did not answer within the time limit.");
            return String::new();
        }
        Err(error) => {
            bundle.lacks(format!("No explanation: {error}."));
            return String::new();
        }
    };
    let source = &subject.text;
    let explained =
        Explained { test: &subject.judged, source, file: "test.litmus", explanation: &explanation };
    let text = explanation::text(explained);
    bundle.add("explanation.txt", "the model's reason", text.as_bytes());
    bundle.add("explanation.svg", "the reason as a picture", explanation::svg(explained).as_bytes());
    text
}

fn write_kernels(bundle: &mut Bundle, program: &Program) -> Result<(), Failure> {
    for (number, kernel) in program.kernels().enumerate() {
        let text_name = Path::new(KERNEL).with_extension("spvasm");
        for (path, what, as_text) in [
            (numbered(KERNEL.as_ref(), number), "a kernel as SPIR-V", false),
            (numbered(&text_name, number), "its text", true),
        ] {
            bundle.add(path.display().to_string(), what, &bytes(&kernel.words, as_text)?);
        }
    }
    Ok(())
}

/// Adds the machine code of the threads. Returns the error of a compiler that failed.
fn machine_code(
    bundle: &mut Bundle,
    subject: &ReproSubject,
    meant: &GenerationTarget,
) -> Result<Option<String>, Failure> {
    let Some(target) = &meant.target else { return Ok(None) };
    let source = &subject.loaded.source;
    let test = subject.device_test()?;
    let line =
        beside::threads(&source.argument, &source.id, &test, subject.variant, target, beside::PATIENCE)?;
    let text = codegen::format_threads(&line);
    if line.verdict != CodegenVerdict::Crashes {
        bundle.add("machine-code.txt", "the machine code of the threads", text.as_bytes());
        return Ok(None);
    }
    bundle.lacks(format!("No machine code: {}", text.trim()));
    Ok(Some(text))
}
