//! `repro`: a folder of files that reproduce the result of a test without this tool.

mod amber;
mod host;
mod readme;

use std::path::Path;
use std::time::Duration;

use explanation::Explained;
use litmus::convert::to_vulkan;
use litmus::glsl::{GlslShader, to_glsl};
use litmus::{Dialect, Prediction, Test};
use model::{
    Budget, ExplainOptions, ExplanationAnswer, Model, PredictOptions, explain_outcome,
    predict_with_growing_bound,
};
use results::read::Results;
use results::wire::{CodegenVerdict, DeviceRecord, NeededTransformations, RunLine, VerdictWord};
use results::write::codegen;
use runner::RunVariant;
use shaders::Program;
use sim::SimDevice;

use crate::compilers::kernels::{GenerationTarget, encode_spirv, numbered_path};
use crate::compilers::{report_code, targets};
use crate::inputs::load_single_test;
use crate::kinds::litmus::planned::without_filter;
use crate::models::{self, LoadedModel};
use crate::source::{LoadedTest, SourceOrigin, TestSource};
use crate::time_limit::stop_after;
use crate::{Failure, explain_records};
pub use amber::create_amber_script;
use host::KERNEL_FILE;

#[derive(Clone, Copy, Debug)]
pub struct ReproOptions<'a> {
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
    loaded: LoadedTest,
    variant: RunVariant,
    /// The judged program: the program that devices run, in the Vulkan memory model and without a filter.
    judged_test: Test,
    text: String,
}

/// A recorded verdict with its device.
struct RecordedVerdict {
    line: RunLine,
    device: Option<DeviceRecord>,
    /// The transformations that the violation needs; the kernels have no others.
    transformations: Option<NeededTransformations>,
}

#[derive(Clone, Debug)]
pub struct BundleFile {
    pub name: String,
    pub bytes: Vec<u8>,
    description: String,
}

#[derive(Clone, Debug, Default)]
pub struct Bundle {
    /// The files, in the order of the README.
    pub files: Vec<BundleFile>,
    /// Missing files, with the reason.
    pub missing: Vec<String>,
}

impl Bundle {
    fn add_file(&mut self, name: impl Into<String>, description: impl Into<String>, bytes: &[u8]) {
        self.files.push(BundleFile {
            name: name.into(),
            bytes: bytes.to_vec(),
            description: description.into(),
        });
    }

    fn add_missing(&mut self, what: impl Into<String>) {
        self.missing.push(what.into());
    }
}

/// Creates a bundle.
///
/// # Errors
/// If the test is invalid or cannot be compiled, or the results do not contain it.
pub fn create_bundle(request: &ReproOptions<'_>) -> Result<Bundle, Failure> {
    let (loaded, recorded) = match request.results {
        Some(results) => {
            let (loaded, recorded) = select_recorded(request, results)?;
            (loaded, Some(recorded))
        }
        None => (load_single_test(request.test.unwrap_or_default())?, None),
    };
    let subject = ReproSubject::new(loaded)?;
    let file = &subject.loaded.source.file;
    let chosen = load_model(request, recorded.as_ref())?;
    if !chosen.model.supports_dialect(subject.judged_test.dialect) {
        return Err(Failure::input_message(format!(
            "{file}: the model does not support this dialect; choose another with `--model`"
        )));
    }
    let settings = generation_target(request, recorded.as_ref())?;
    let config = subject.variant.kernel_config(settings.config);
    let program = shaders::compile_program(&subject.device_test()?, &config, subject.variant.pipelines)
        .map_err(|error| subject.loaded.no_kernel_failure(subject.variant.shader.stage, &error))?;
    let mut bundle = Bundle::default();

    bundle.add_file("test.litmus", "the test", subject.text.as_bytes());
    let prediction = predict_subject(&subject, &chosen, request)?;
    let explanation = add_explanations(&mut bundle, &subject, &chosen, recorded.as_ref(), request);
    add_kernels(&mut bundle, &program)?;
    match host::write_host_program(&subject.judged_test, &program, prediction.as_ref(), &settings.stress) {
        Ok(text) => {
            bundle.add_file("host.c", "a program that runs the kernels and counts outcomes", text.as_bytes());
        }
        Err(why) => bundle.add_missing(format!("No C program: {why}.")),
    }
    match to_vulkan(&subject.loaded.test).and_then(|test| to_glsl(&test)) {
        Ok(glsl) => {
            let file = format!("test.{}", glsl.file_extension());
            bundle.add_file(
                file.as_str(),
                "the test as GLSL, one instance of it",
                format_glsl_shader(&glsl).as_bytes(),
            );
        }
        Err(why) => bundle.add_missing(format!("No GLSL: {why}.")),
    }
    let compiler_error = add_machine_code(&mut bundle, &subject, &settings)?;
    let text = readme::render_readme(&readme::ReadmeContent {
        subject: &subject,
        model: chosen.model.name(),
        prediction: prediction.as_ref(),
        recorded: recorded.as_ref(),
        device: settings.target.as_ref().map(|target| format!("{} ({})", target.name, target.driver())),
        subgroup_size: program
            .kernels()
            .find_map(|kernel| kernel.requirements.subgroup_size.or(kernel.requirements.required_size)),
        compiler_error: compiler_error.as_deref(),
        explanation: &explanation,
        bundle: &bundle,
    });
    bundle.add_file("README.md", "this text", text.as_bytes());
    Ok(bundle)
}

/// Returns a GLSL shader with a comment that contains the command to check it.
pub fn format_glsl_shader(glsl: &GlslShader) -> String {
    let claim = glsl.claim.as_ref().map(|claim| format!(" --assert '{claim}'")).unwrap_or_default();
    let (file, [x, y, z]) = (format!("FILE.{}", glsl.file_extension()), glsl.grid);
    let grid_flags = match glsl.subgroup_size {
        Some(size) => format!("--grid {x} --subgroup-size {size}"),
        None => format!("--grid {x},{y},{z}"),
    };
    format!("// vk-litmus check {file} {grid_flags}{claim}\n{}", glsl.source)
}

impl ReproSubject {
    fn new(loaded: LoadedTest) -> Result<ReproSubject, Failure> {
        let file_name = loaded.source.file.clone();
        let variant: RunVariant = loaded.source.variant.parse().map_err(Failure::input_error)?;
        let placed = loaded.to_device_test()?;
        let effective_test = shaders::effective_test(&placed, variant.shader)
            .map_err(|error| loaded.no_kernel_failure(variant.shader.stage, &error))?;
        let text = match loaded.test.dialect {
            Dialect::Vulkan => loaded.text.clone(),
            Dialect::Khronos | Dialect::Hsa => litmus::print(&placed),
        };
        // Explanations refer to lines of the printed text.
        let judged_test = match loaded.test.dialect {
            Dialect::Vulkan => effective_test,
            Dialect::Khronos | Dialect::Hsa => litmus::parse(&text, &file_name).unwrap_or(effective_test),
        };
        Ok(ReproSubject { judged_test: without_filter(&judged_test), variant, text, loaded })
    }

    fn device_test(&self) -> Result<Test, Failure> {
        self.loaded.to_device_test()
    }

    fn name(&self) -> &str {
        &self.loaded.source.id
    }
}

/// Selects a recorded verdict, preferring violations, and loads its test.
fn select_recorded(
    request: &ReproOptions<'_>,
    results: &[Results],
) -> Result<(LoadedTest, RecordedVerdict), Failure> {
    let lines = results.iter().flat_map(|results| results.lines.iter().map(move |line| (results, line)));
    let is_selected = |line: &RunLine| request.test.is_none_or(|id| id == line.id);
    let candidates: Vec<(&Results, &RunLine)> = lines.filter(|(_, line)| is_selected(line)).collect();
    let on_device = |line: &RunLine| request.device.is_some_and(|device| device == line.device);
    let priority = |line: &RunLine| (line.verdict == VerdictWord::Violates, on_device(line));
    let best = candidates.iter().map(|(_, line)| priority(line)).max();
    let Some(best) = best else {
        let test = request.test.unwrap_or("a test");
        return Err(Failure::input_message(format!("the results have no verdict for `{test}`")));
    };
    let best: Vec<&(&Results, &RunLine)> =
        candidates.iter().filter(|(_, line)| priority(line) == best).collect();
    let (results, line) = match best.as_slice() {
        [only] => **only,
        [first, ..] if request.test.is_some() => **first,
        several => {
            let ids: Vec<&str> = several.iter().map(|(_, line)| line.id.as_str()).collect();
            let shown = ids.iter().take(MAX_LISTED_TESTS).copied().collect::<Vec<_>>().join(", ");
            let more = if ids.len() > MAX_LISTED_TESTS { " …" } else { "" };
            return Err(Failure::input_message(format!(
                "name one of the tests of the results: {shown}{more}"
            )));
        }
    };
    let plan = results.plan.as_ref();
    let record = plan.and_then(|plan| plan.tests.iter().find(|test| test.id == line.id));
    let text = record.map(|record| record.text.clone()).unwrap_or_default();
    let mut codes = results.machine_code.iter();
    let code = codes.find(|code| (&code.id, &code.device) == (&line.id, &line.device));
    let transformations = code.and_then(|code| code.transformations.clone());
    let test_id = transformations.as_ref().map_or(&line.id, |needed| &needed.id);
    let loaded = if text.is_empty() {
        load_single_test(test_id)?
    } else {
        let (id, variant) = test_id.split_once('@').unwrap_or((test_id, ""));
        let source = TestSource {
            id: test_id.clone(),
            file: id.to_owned(),
            argument: test_id.clone(),
            variant: variant.to_owned(),
            origin: SourceOrigin::Embedded(id.to_owned()),
            text: Ok(text),
        };
        source.load().map_err(|rejected| rejected.failure)?
    };
    let device = plan.and_then(|plan| plan.devices.iter().find(|device| device.name == line.device));
    Ok((loaded, RecordedVerdict { line: line.clone(), device: device.cloned(), transformations }))
}

/// The number of tests listed in an error.
const MAX_LISTED_TESTS: usize = 8;

/// Loads the requested model, else the shipped model of the recorded run.
fn load_model(
    request: &ReproOptions<'_>,
    recorded: Option<&RecordedVerdict>,
) -> Result<LoadedModel, Failure> {
    match (request.model, recorded) {
        (Some(model), _) => models::load(model),
        (None, Some(recorded)) if Model::shipped(&recorded.line.model).is_some() => {
            models::load(&recorded.line.model)
        }
        (None, _) => models::load(Model::default_for_dialect(Dialect::Vulkan)),
    }
}

/// Returns the settings for the requested device, else for the device of the recorded run if it is available.
fn generation_target(
    request: &ReproOptions<'_>,
    recorded: Option<&RecordedVerdict>,
) -> Result<GenerationTarget, Failure> {
    let target_named = |device: &str| {
        if device == SimDevice::NAME {
            return GenerationTarget::for_simulated_gpu();
        }
        GenerationTarget::for_target(
            targets::select_targets(&[device.to_owned()], request.mesa)?.into_iter().next(),
        )
    };
    match (request.device, recorded) {
        (Some(device), _) => target_named(device),
        (None, Some(recorded)) => {
            target_named(&recorded.line.device).or_else(|_| GenerationTarget::for_target(None))
        }
        (None, None) => GenerationTarget::for_target(None),
    }
}

fn predict_subject(
    subject: &ReproSubject,
    chosen: &LoadedModel,
    request: &ReproOptions<'_>,
) -> Result<Option<Prediction>, Failure> {
    let stop = stop_after(request.timeout);
    let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
    let predicted = predict_with_growing_bound(&subject.judged_test, &chosen.model, &options)
        .map_err(|error| Failure::input_message(format!("{}: {error}", subject.loaded.source.file)))?;
    Ok(Some(predicted).filter(|prediction| prediction.complete))
}

/// Explains the observed forbidden outcome, else the test's question. Returns the text, which is empty
/// without an answer.
fn add_explanations(
    bundle: &mut Bundle,
    subject: &ReproSubject,
    chosen: &LoadedModel,
    recorded: Option<&RecordedVerdict>,
    request: &ReproOptions<'_>,
) -> String {
    let condition_text = recorded
        .and_then(|seen| explain_records::most_notable_outcome(&seen.line))
        .and_then(|text| explain_records::outcome_to_condition(&text));
    let condition = match &condition_text {
        Some(text) => litmus::parse_condition(text, "outcome", &subject.judged_test).ok(),
        None => None,
    };
    let (half, stop) = (stop_after(request.timeout / 2), stop_after(request.timeout));
    let options = ExplainOptions {
        outcome: condition,
        verdict_budget: Budget::until(&half),
        search_budget: Budget::until(&stop),
        ..ExplainOptions::default()
    };
    let explanation = match explain_outcome(&subject.judged_test, &chosen.model, &options) {
        Ok(explanation) if explanation.answer != ExplanationAnswer::Unknown => explanation,
        Ok(_) => {
            bundle.add_missing("No explanation: the model did not answer within the time limit.");
            return String::new();
        }
        Err(error) => {
            bundle.add_missing(format!("No explanation: {error}."));
            return String::new();
        }
    };
    let source = &subject.text;
    let explanation_input =
        Explained { test: &subject.judged_test, source, file: "test.litmus", explanation: &explanation };
    let text = explanation::text(explanation_input);
    bundle.add_file("explanation.txt", "the model's reason", text.as_bytes());
    bundle.add_file(
        "explanation.svg",
        "the reason as a picture",
        explanation::svg(explanation_input).as_bytes(),
    );
    text
}

fn add_kernels(bundle: &mut Bundle, program: &Program) -> Result<(), Failure> {
    for (number, kernel) in program.kernels().enumerate() {
        let text_name = Path::new(KERNEL_FILE).with_extension("spvasm");
        for (path, what, as_text) in [
            (numbered_path(KERNEL_FILE.as_ref(), number), "a kernel as SPIR-V", false),
            (numbered_path(&text_name, number), "its text", true),
        ] {
            bundle.add_file(path.display().to_string(), what, &encode_spirv(&kernel.words, as_text)?);
        }
    }
    Ok(())
}

/// Adds the machine code of the threads. Returns the error if the compiler fails.
fn add_machine_code(
    bundle: &mut Bundle,
    subject: &ReproSubject,
    settings: &GenerationTarget,
) -> Result<Option<String>, Failure> {
    let Some(target) = &settings.target else { return Ok(None) };
    let source = &subject.loaded.source;
    let test = subject.device_test()?;
    let line = report_code::compile_threads(
        &source.argument,
        &source.id,
        &test,
        subject.variant,
        target,
        report_code::COMPILER_TIMEOUT,
    )?;
    let text = codegen::format_threads(&line);
    if line.verdict != CodegenVerdict::Crashes {
        bundle.add_file("machine-code.txt", "the machine code of the threads", text.as_bytes());
        return Ok(None);
    }
    bundle.add_missing(format!("No machine code: {}", text.trim()));
    Ok(Some(text))
}
