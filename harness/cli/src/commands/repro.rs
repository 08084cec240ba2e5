//! `repro`: everything that somebody else needs to see what a test shows, in a folder.

mod host;
mod readme;

use std::fs;
use std::path::{Path, PathBuf};

use campaign::choice::{self, Chosen};
use campaign::kinds::litmus::plan::without_filter;
use campaign::patience::patience;
use campaign::source::{Loaded, Origin, TestSource};
use explanation::Explained;
use litmus::convert::{for_device, to_vulkan};
use litmus::glsl::to_glsl;
use litmus::{Dialect, Prediction, Test};
use model::{Answer, Budget, ExplainOptions, Model, Options, explain, predict_growing};
use results::read::Results;
use results::wire::{DeviceRecord, RunLine, VerdictWord};
use runner::Variant;
use shaders::Program;
use sim::SimDevice;

use crate::arguments::{Emit, Repro};
use crate::commands::codegen::{beside, targets};
use crate::commands::compile::{Meant, bytes, numbered};
use crate::commands::convert::{one, shader};
use crate::commands::report::read_all;
use crate::exit::{Failure, Outcome};
use crate::output::{say, write_file};
use crate::reasons;
use host::KERNEL;

/// What a bundle is about.
struct Subject {
    loaded: Loaded,
    variant: Variant,
    /// The program that devices run, in terms of the Vulkan memory model and without a filter: what is judged.
    judged: Test,
    /// Its text.
    text: String,
}

/// What a run showed.
struct Seen {
    line: RunLine,
    device: Option<DeviceRecord>,
}

/// A file of the bundle, and what it is.
struct Written {
    name: String,
    what: String,
}

/// A bundle in the making.
struct Bundle {
    folder: PathBuf,
    written: Vec<Written>,
    /// What is not in it, and why.
    lacking: Vec<String>,
}

impl Bundle {
    fn new(folder: &Path) -> Result<Bundle, Failure> {
        let shown = folder.display();
        fs::create_dir_all(folder)
            .map_err(|error| Failure::environment_message(format!("{shown}: {error}")))?;
        let mut entries = fs::read_dir(folder)
            .map_err(|error| Failure::environment_message(format!("{shown}: {error}")))?;
        if entries.next().is_some() {
            return Err(Failure::input_message(format!("{shown} is not empty: choose another folder")));
        }
        Ok(Bundle { folder: folder.to_owned(), written: Vec::new(), lacking: Vec::new() })
    }

    fn add(&mut self, name: impl Into<String>, what: impl Into<String>, bytes: &[u8]) -> Result<(), Failure> {
        let name = name.into();
        write_file(&self.folder.join(&name), bytes)?;
        self.written.push(Written { name, what: what.into() });
        Ok(())
    }

    fn lacks(&mut self, what: impl Into<String>) {
        self.lacking.push(what.into());
    }
}

/// Runs the command.
///
/// # Errors
/// When the test cannot be read or placed, the results do not hold it, or the folder cannot be written.
pub fn repro(arguments: &Repro, quiet: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Success;
    let (loaded, seen) = match &arguments.results {
        Some(path) => {
            let results = read_all(std::slice::from_ref(path), &mut outcome)?;
            let (loaded, seen) = of_results(arguments, &results)?;
            (loaded, Some(seen))
        }
        None => (one(arguments.test.as_deref().unwrap_or_default())?, None),
    };
    let subject = Subject::new(loaded)?;
    let file = &subject.loaded.source.file;
    let chosen = model(arguments, seen.as_ref())?;
    if !chosen.model.judges(subject.judged.dialect) {
        return Err(Failure::input_message(format!("{file}: the model does not speak of this dialect")));
    }
    let meant = meant(arguments, seen.as_ref())?;
    let config = subject.variant.kernel_config(meant.config);
    let program = shaders::program(&subject.device_test()?, &config, subject.variant.pipelines)
        .map_err(|error| Failure::input_message(format!("{file}: no kernel: {error}")))?;
    let mut bundle = Bundle::new(&arguments.out)?;

    bundle.add("test.litmus", "the test", subject.text.as_bytes())?;
    let prediction = predict(&subject, &chosen, arguments)?;
    let explained = explanations(&mut bundle, &subject, &chosen, seen.as_ref(), arguments)?;
    kernels(&mut bundle, &program)?;
    match host::write(&subject.judged, &program, prediction.as_ref(), &meant.stress) {
        Ok(text) => {
            bundle.add("host.c", "a program that runs the kernels and counts outcomes", text.as_bytes())?
        }
        Err(why) => bundle.lacks(format!("No host in C: {why}.")),
    }
    glsl(&mut bundle, &subject)?;
    let ended = machine_code(&mut bundle, &subject, &meant)?;
    let text = readme::write(&readme::Said {
        subject: &subject,
        model: chosen.model.name(),
        prediction: prediction.as_ref(),
        seen: seen.as_ref(),
        device: meant.target.as_ref().map(|target| format!("{} ({})", target.name, target.driver())),
        ended: ended.as_deref(),
        explained: &explained,
        bundle: &bundle,
    });
    bundle.add("README.md", "this text", text.as_bytes())?;
    if !quiet {
        for lack in &bundle.lacking {
            say(lack);
        }
        say(&format!("{} files in {}", bundle.written.len(), bundle.folder.display()));
    }
    Ok(outcome)
}

impl Subject {
    fn new(loaded: Loaded) -> Result<Subject, Failure> {
        let file = loaded.source.file.clone();
        let variant: Variant = loaded.source.variant.parse().map_err(Failure::input_error)?;
        let placed = placed(&loaded)?;
        let said = shaders::meaning(&placed, variant.told)
            .map_err(|error| Failure::input_message(format!("{file}: no kernel: {error}")))?;
        let text = match loaded.test.dialect {
            Dialect::Vulkan => loaded.text.clone(),
            Dialect::Khronos | Dialect::Hsa => litmus::print(&placed),
        };
        // The lines that explanations name are those of the text that is shown.
        let judged = match loaded.test.dialect {
            Dialect::Vulkan => said,
            Dialect::Khronos | Dialect::Hsa => litmus::parse(&text, &file).unwrap_or(said),
        };
        Ok(Subject { judged: without_filter(&judged), variant, text, loaded })
    }

    fn device_test(&self) -> Result<Test, Failure> {
        placed(&self.loaded)
    }

    fn name(&self) -> &str {
        &self.loaded.source.id
    }
}

fn placed(loaded: &Loaded) -> Result<Test, Failure> {
    for_device(&loaded.test).map_err(|error| {
        let (file, line) = (&loaded.source.file, error.span().line);
        Failure::input_message(format!("{file}:{line}: no kernel: {error}"))
    })
}

/// The test and the verdict of results that are meant: those named, of them one that violates.
fn of_results(arguments: &Repro, results: &[Results]) -> Result<(Loaded, Seen), Failure> {
    let lines = results.iter().flat_map(|results| results.lines.iter().map(move |line| (results, line)));
    let named = |line: &RunLine| arguments.test.as_ref().is_none_or(|id| *id == line.id);
    let here: Vec<(&Results, &RunLine)> = lines.filter(|(_, line)| named(line)).collect();
    let on_device = |line: &RunLine| arguments.device.as_ref().is_some_and(|device| *device == line.device);
    let weight = |line: &RunLine| (line.verdict == VerdictWord::Violates, on_device(line));
    let best = here.iter().map(|(_, line)| weight(line)).max();
    let Some(best) = best else {
        let test = arguments.test.as_deref().unwrap_or("a test");
        return Err(Failure::input_message(format!("the results have no verdict on `{test}`")));
    };
    let best: Vec<&(&Results, &RunLine)> = here.iter().filter(|(_, line)| weight(line) == best).collect();
    let (results, line) = match best.as_slice() {
        [only] => **only,
        [first, ..] if arguments.test.is_some() => **first,
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
        source.load().map_err(|rejected| {
            let (source, rejection) = *rejected;
            rejection.failure(&source.file)
        })?
    };
    let device = plan.and_then(|plan| plan.devices.iter().find(|device| device.name == line.device));
    Ok((loaded, Seen { line: line.clone(), device: device.cloned() }))
}

/// Tests that are named where one has to be chosen.
const MOST_NAMED: usize = 8;

/// The model that judges: that of the run, where it is a shipped one.
fn model(arguments: &Repro, seen: Option<&Seen>) -> Result<Chosen, Failure> {
    match (&arguments.model, seen) {
        (Some(model), _) => choice::load(model),
        (None, Some(seen)) if Model::shipped(&seen.line.model).is_some() => choice::load(&seen.line.model),
        (None, _) => choice::load(Model::default_for(Dialect::Vulkan)),
    }
}

/// What the kernels are made for: the device that is named, else that of the run where it is here.
fn meant(arguments: &Repro, seen: Option<&Seen>) -> Result<Meant, Failure> {
    let named = |device: &str| {
        if device == SimDevice::NAME {
            return Meant::simulated();
        }
        Meant::of(targets::targets(&[device.to_owned()], arguments.mesa.as_deref())?.into_iter().next())
    };
    match (&arguments.device, seen) {
        (Some(device), _) => named(device),
        (None, Some(seen)) => named(&seen.line.device).or_else(|_| Meant::of(None)),
        (None, None) => Meant::of(None),
    }
}

fn predict(subject: &Subject, chosen: &Chosen, arguments: &Repro) -> Result<Option<Prediction>, Failure> {
    let stop = patience(arguments.timeout);
    let options = Options { budget: Budget::until(&stop), ..Options::default() };
    let predicted = predict_growing(&subject.judged, &chosen.model, &options)
        .map_err(|error| Failure::input_message(format!("{}: {error}", subject.loaded.source.file)))?;
    Ok(Some(predicted).filter(|prediction| prediction.complete))
}

/// The explanation of the outcome that was seen and is forbidden, else of the test's question, as text; it is empty where there
/// is nothing to ask.
fn explanations(
    bundle: &mut Bundle,
    subject: &Subject,
    chosen: &Chosen,
    seen: Option<&Seen>,
    arguments: &Repro,
) -> Result<String, Failure> {
    let seen =
        seen.and_then(|seen| reasons::remarkable(&seen.line)).and_then(|text| reasons::condition(&text));
    let condition = match &seen {
        Some(text) => litmus::parse_condition(text, "outcome", &subject.judged).ok(),
        None => None,
    };
    let (half, stop) = (patience(arguments.timeout / 2), patience(arguments.timeout));
    let options = ExplainOptions {
        outcome: condition,
        verdict: Budget::until(&half),
        budget: Budget::until(&stop),
        ..ExplainOptions::default()
    };
    let explanation = match explain(&subject.judged, &chosen.model, &options) {
        Ok(explanation) if explanation.answer != Answer::Unknown => explanation,
        Ok(_) => {
            bundle.lacks("No explanation: the model did not answer in time.");
            return Ok(String::new());
        }
        Err(error) => {
            bundle.lacks(format!("No explanation: {error}."));
            return Ok(String::new());
        }
    };
    let source = &subject.text;
    let explained =
        Explained { test: &subject.judged, source, file: "test.litmus", explanation: &explanation };
    let text = explanation::text(explained);
    bundle.add("explanation.txt", "why the model says so", text.as_bytes())?;
    bundle.add("explanation.svg", "the same as a picture", explanation::svg(explained).as_bytes())?;
    Ok(text)
}

fn kernels(bundle: &mut Bundle, program: &Program) -> Result<(), Failure> {
    for (number, kernel) in program.kernels().enumerate() {
        let text_name = Path::new(KERNEL).with_extension("spvasm");
        for (path, what, emit) in [
            (numbered(KERNEL.as_ref(), number), "a kernel as SPIR-V", Emit::Spv),
            (numbered(&text_name, number), "its text", Emit::Spvasm),
        ] {
            bundle.add(path.display().to_string(), what, &bytes(&kernel.words, emit)?)?;
        }
    }
    Ok(())
}

fn glsl(bundle: &mut Bundle, subject: &Subject) -> Result<(), Failure> {
    match to_vulkan(&subject.loaded.test).and_then(|test| to_glsl(&test)) {
        Ok(glsl) => bundle.add("test.comp", "the test as GLSL, one instance of it", shader(&glsl).as_bytes()),
        Err(why) => {
            bundle.lacks(format!("No GLSL: {why}."));
            Ok(())
        }
    }
}

/// Adds what the device's compiler makes of the threads. Gives how it ended, where it did not.
fn machine_code(bundle: &mut Bundle, subject: &Subject, meant: &Meant) -> Result<Option<String>, Failure> {
    let Some(target) = &meant.target else { return Ok(None) };
    let source = &subject.loaded.source;
    let test = subject.device_test()?;
    let line =
        beside::threads(&source.argument, &source.id, &test, subject.variant, target, beside::PATIENCE)?;
    let (text, ended) = beside::text(&line);
    if ended == Outcome::Success {
        bundle.add("machine-code.txt", "what the device's compiler makes of the threads", text.as_bytes())?;
        return Ok(None);
    }
    bundle.lacks(format!("No machine code: {}", text.trim()));
    Ok(Some(text))
}
