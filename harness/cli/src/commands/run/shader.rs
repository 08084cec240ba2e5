//! `run SHADER`: the user's own module, dispatched with its inputs again and again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use campaign::book::Done;
use campaign::expect::{self, Expected as Excused};
use campaign::kinds::litmus::TestBudget;
use campaign::kinds::shader::{self, Expected, FinalNumber, Says, Shader, ShaderClaim, Shaders};
use campaign::misbehave::Misbehaviour;
use campaign::patience::patience;
use campaign::shard;
use frontend::{Dispatch, FinalCell, Finals, Module, Problem, Refusal};
use model::Model;
use results::wire::VerdictWord;
use results::write::{Format, number, run_writer};
use runner::shader::Input;

use super::progress::Bar;
use super::{DEFAULT_TIME, PREDICTION_PART};
use crate::arguments::Run;
use crate::exit::{Failure, Outcome};
use crate::output::{Data, complain, layout, say};
use crate::source;

/// The longest that a model is asked about the contents of a shader: as long as `check` asks.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs shaders.
///
/// # Errors
/// What ended it before anything was run, or kept it from going on.
pub fn shaders(
    arguments: &Run,
    quiet: bool,
    verdicts: &mut Vec<(VerdictWord, bool)>,
) -> Result<Outcome, Failure> {
    let refused = [
        ("--suite", arguments.suite.is_some()),
        ("--progress", arguments.progress.is_some()),
        ("--cts-name", arguments.cts_name.is_some()),
        ("--save-baseline", arguments.save_baseline),
        ("--format gtest", arguments.format == Format::Gtest),
        ("--gtest_list_tests", arguments.gtest_list_tests),
        ("--gtest_filter", arguments.gtest_filter.is_some()),
        ("--gtest_output", arguments.gtest_output.is_some()),
    ];
    if let Some((flag, _)) = refused.iter().find(|(_, given)| *given) {
        return Err(Failure::not_available(format!("`{flag}` with shaders")));
    }
    if let Some(test) = arguments.tests.iter().find(|argument| !source::is_shader(argument)) {
        return Err(Failure::not_available(format!("litmus tests beside shaders in one run (`{test}`)")));
    }
    let arguments = &super::complete(arguments, quiet)?;
    let started = Instant::now();
    let misbehaviour = Misbehaviour::parse(&arguments.misbehave)?;
    let mut writer = run_writer(arguments.format, Data::coloured(), layout(arguments.table))
        .map_err(Failure::input_error)?;
    let place = super::place(arguments, quiet);
    place.check()?;
    let chosen = shader::model(arguments.model.as_deref())?;
    let mut outcome = Outcome::Success;
    let budget = match (arguments.instances, arguments.time) {
        (Some(instances), _) => TestBudget::Instances(instances),
        (None, time) => TestBudget::Time(time.unwrap_or(DEFAULT_TIME)),
    };
    let longest = match budget {
        TestBudget::Time(time) => PATIENCE.min(time / PREDICTION_PART),
        TestBudget::Instances(_) => PATIENCE,
    };
    let mut all = Vec::new();
    for file in &arguments.tests {
        match read(file, arguments, &chosen.model, longest) {
            Ok(some) => all.extend(some),
            Err(failure) => {
                complain(failure.report());
                outcome.note(Outcome::from(&failure));
            }
        }
    }
    name_apart(&mut all);
    if all.is_empty() {
        return match outcome {
            Outcome::Success => Err(Failure::input_message("no shader to run")),
            wrong => Ok(wrong),
        };
    }
    for shader in all.iter().filter(|_| !quiet) {
        let compiled = shader.compiler.iter().map(|compiler| format!("compiled by {compiler}"));
        compiled
            .chain(shader.notes.iter().cloned())
            .for_each(|note| say(&format!("{}: {note}", shader.file)));
    }
    let ids: Vec<String> = all.iter().map(|shader| shader.id.clone()).collect();
    let all = shard::part(all, arguments.shard);
    if all.is_empty() {
        return Ok(outcome);
    }
    let targets = super::devices(arguments, false)?;
    let mut plan = shader::ShaderPlan::new(targets, all, chosen);
    let devices = plan.devices()?;
    let expectations = super::expectations(arguments, &devices)?;
    let excused = Excused::new(expectations, &ids, devices);
    plan.skip(&|device, id| excused.skips(device, id).map(|place| expect::reason(&place)));

    // From the journal's first moment on, an interruption ends in order.
    let interrupted = super::interrupted()?;
    let options = &super::options(arguments);
    let (folder, seed, done) = place.open(plan.record(options, budget)?, &say)?;
    let kind = Shaders { plan: &plan, options, budget, seed, misbehaviour: &misbehaviour };
    super::keep_command(arguments, folder.path())?;
    let stop = arguments.bisect.then(|| interrupted.clone());
    let time = match budget {
        TestBudget::Time(time) => Some(time),
        TestBudget::Instances(_) => None,
    };
    let bar = Bar::new(plan.len(), super::shows(arguments, quiet), time, stop);
    let ended = super::go(&kind, folder, done, &Done::new(), writer.as_mut(), &bar, &interrupted)?;
    super::note_verdicts(&ended, verdicts);
    let took = format!("{}, ", number::seconds(started.elapsed().as_secs_f64()));
    for line in &ended.lines {
        let claim = line.shader.as_ref().and_then(|shader| shader.claim.as_ref());
        if let Some(claim) = claim.filter(|claim| claim.broken > 0) {
            let broken = number::count(claim.broken);
            say(&format!(
                "{} on {}: `{}` does not hold of {broken} dispatches",
                line.id, line.device, claim.text
            ));
            outcome.note(Outcome::RuleBroken);
        }
    }
    outcome.note(super::conclude(&ended, arguments, &excused, quiet, &took));
    Ok(outcome)
}

/// Gives shaders of one name the names of their files.
fn name_apart(all: &mut [Shader]) {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for shader in all.iter() {
        *counts.entry(shader.id.clone()).or_default() += 1;
    }
    for shader in all.iter_mut().filter(|shader| counts.get(&shader.id).is_some_and(|count| *count > 1)) {
        shader.id = format!("{}:{}", shader.file, shader.shader.entry);
    }
}

/// The entry points of a shader, or the one that is asked for, with what a model says of them.
fn read(file: &str, arguments: &Run, model: &Model, longest: Duration) -> Result<Vec<Shader>, Failure> {
    let wrong = |what: String| Failure::input_message(format!("{file}:{what}"));
    let given = &arguments.kernel;
    let options = given.options(None)?;
    let shader = source::load(file, given).map_err(|error| error.failure())?;
    let module = Arc::new(frontend::read(&shader.module).map_err(|refusal| wrong(refusal.to_string()))?);
    let entries: Vec<String> = match &options.entry {
        Some(entry) => vec![entry.clone()],
        None => module.entry_points().into_iter().map(str::to_owned).collect(),
    };
    if entries.is_empty() {
        return Err(wrong(format!(" {}", module.no_entry_point())));
    }
    let mut all = Vec::with_capacity(entries.len());
    for entry in entries {
        let options = frontend::Options { entry: Some(entry.clone()), ..options.clone() };
        let stem = std::path::Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file);
        let mut own = Shader {
            id: format!("{stem}:{entry}"),
            file: file.to_owned(),
            flags: given.words(),
            compiler: shader.compiler.clone(),
            shader: runner::shader::Shader { entry, grid: [1; 3], ..runner::shader::Shader::default() },
            names: Vec::new(),
            words: Arc::new(|places| places.iter().map(|place| format!("{place:?}")).collect()),
            local_size: [1; 3],
            workgroup_bytes: 0,
            needs: Vec::new(),
            unknown: Vec::new(),
            loops: false,
            expected: Expected::Unknown { race_free: false, why: "it was not looked at".to_owned() },
            claim: None,
            notes: Vec::new(),
            unavailable: None,
        };
        match frontend::dispatch(&module, &options) {
            Ok(dispatch) => fill(&mut own, dispatch, &module, &options, model, longest)
                .map_err(|refusal| wrong(refusal.to_string()))?,
            // What is wrong with it is an error; what is not there yet is not.
            Err(Refusal { what: Problem::Unsupported(what), .. }) => {
                own.unavailable = Some(format!("not available: {what}"));
            }
            Err(refusal) => return Err(wrong(refusal.to_string())),
        }
        all.push(own);
    }
    Ok(all)
}

fn fill(
    own: &mut Shader,
    dispatch: Dispatch,
    module: &Arc<Module>,
    options: &frontend::Options,
    model: &Model,
    longest: Duration,
) -> Result<(), Refusal> {
    let written: Vec<(u32, u32, u32)> = (dispatch.buffers.iter().filter(|buffer| !buffer.uniform))
        .map(|buffer| (buffer.set, buffer.binding, buffer.element))
        .collect();
    // Bytes that are rounded up to words are what the model looks at too.
    let mut options = options.clone();
    for buffer in &dispatch.buffers {
        options.buffers.insert((buffer.set, buffer.binding), buffer.bytes.clone());
    }
    let number = |at: (u32, u32, u32)| written.iter().position(|own| *own == at).map(|number| number as u32);
    if let Some(claim) = frontend::claim(module, &options)? {
        let mut cells = Vec::with_capacity(claim.places.len());
        for (at, offset, bytes) in &claim.places {
            let Some(buffer) = number(*at) else {
                let what =
                    "what is claimed is about memory that no invocation of a dispatch writes for the host";
                return Err(Problem::Annotation(what.to_owned()).at(frontend::Place::Module));
            };
            cells.push(FinalNumber { name: String::new(), buffer, offset: *offset, bytes: *bytes });
        }
        name_cells(&mut cells, &written, module, &options)?;
        let text = claim.text.clone();
        own.claim = Some(ShaderClaim { text, cells, holds: Arc::new(move |values| claim.holds(values)) });
    }
    let stop = patience(longest);
    let finals = frontend::finals(module, &dispatch, &options, model, model::Budget::until(&stop));
    own.expected = match finals {
        Finals::Undefined(why) => Expected::Undefined(why),
        Finals::Unknown { race_free, why } => Expected::Unknown { race_free, why },
        Finals::Known { cells, contents } => {
            let mut known = Vec::with_capacity(cells.len());
            for FinalCell { at, offset, bytes, .. } in &cells {
                let buffer = number(*at).unwrap_or(u32::MAX);
                known.push(FinalNumber { name: String::new(), buffer, offset: *offset, bytes: *bytes });
            }
            name_cells(&mut known, &written, module, &options)?;
            let says = |says: frontend::FinalSays| Says { allowed: says.allowed, weak: says.weak };
            let contents = contents.into_iter().map(|(values, of)| (values, says(of))).collect();
            Expected::Known { cells: known, contents }
        }
    };
    let (module, options) = (module.clone(), options);
    own.words = Arc::new(move |places| {
        let place = |(buffer, word): &(u32, u64)| {
            let (set, binding, element) = written.get(*buffer as usize).copied().unwrap_or_default();
            (set, binding, element, 4 * word)
        };
        let places: Vec<_> = places.iter().map(place).collect();
        frontend::element_names(&module, &options, &places).unwrap_or_default()
    });
    own.names = dispatch.buffers.iter().map(|buffer| buffer.name.clone()).collect();
    own.shader = runner::shader::Shader {
        words: dispatch.words,
        entry: dispatch.entry,
        grid: dispatch.grid,
        constants: dispatch.constants,
        push: dispatch.push,
        buffers: dispatch
            .buffers
            .iter()
            .map(|buffer| {
                let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte));
                let words: Vec<u32> = buffer.bytes.chunks(4).map(word).collect();
                Input::new([buffer.set, buffer.binding, buffer.element], buffer.uniform, &words)
            })
            .collect(),
    };
    own.local_size = dispatch.local_size;
    own.workgroup_bytes = dispatch.workgroup_bytes;
    own.needs = dispatch.needs;
    own.unknown = dispatch.unknown;
    own.loops = dispatch.loops;
    own.notes = dispatch.notes;
    Ok(())
}

fn name_cells(
    cells: &mut [FinalNumber],
    written: &[(u32, u32, u32)],
    module: &Module,
    options: &frontend::Options,
) -> Result<(), Refusal> {
    let place = |cell: &FinalNumber| {
        let (set, binding, element) = written.get(cell.buffer as usize).copied().unwrap_or_default();
        (set, binding, element, cell.offset)
    };
    let places: Vec<_> = cells.iter().map(place).collect();
    for (cell, name) in cells.iter_mut().zip(frontend::element_names(module, options, &places)?) {
        cell.name = name;
    }
    Ok(())
}
