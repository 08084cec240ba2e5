//! Compares shaders before and after a compiler, and reduces the list of passes that breaks one.

mod subject;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use analysis::{InputGrid, InputMode, needed_sentence, placed_refusal_text};
use codegen::shrink;
use entry_point::input_place::UnsetOverride;
use entry_point::inputs::{DEFAULT_BYTES, fill_bytes};
use entry_point::open_memory::OpenParts;
use entry_point::{AnalysisOptions, DeadlinePredicate, Spot, source_location};
use litmus::Test;
use litmus::minimize::ddmin;
use model::{Budget, Model};
use refine::{KernelVersion, Refinement, RefinementCoverage, RefinementQuery};
use results::wire::{FindingPlace, REFINE_SCHEMA, RefineDifference, RefineLine, RefineVerdict};
use spirv_reader::{ShaderLanguage, SpirvModule};

use super::entry_point_options;
use super::open_memory::{OpenTerms, resolve_open_terms};
use super::prepare_run::require_whole_grid;
use super::source::{Compilation, SPIRV_MAGIC, load, run_to_end, simplify_module, without_source_language};
use crate::temporary::TemporaryFolder;
use crate::time_limit::stop_after;
use crate::{Failure, files};
pub use subject::{RefineSubject, SubjectError, split_by_workgroup};

/// Upper bound on the runs of a compiler that reduce one list of passes.
const MAX_REDUCTIONS: usize = 64;
/// Upper bound on the runs of a compiler that reduce one test.
const MAX_SMALLER_TESTS: u32 = 100;

/// The limits and the world of a comparison.
#[derive(Clone, Debug)]
pub struct RefineRequest {
    /// Time limit for an entry point.
    pub timeout: Duration,
    /// How missing inputs are supplied.
    pub inputs: InputMode,
    /// The memory that other programs may access; `None` inside for all. `None` for a closed world.
    pub open_memory: Option<OpenTerms>,
}

impl RefineRequest {
    /// Returns the open memory for output.
    fn open_words(&self) -> Vec<String> {
        match &self.open_memory {
            None => Vec::new(),
            Some(None) => vec!["all".to_owned()],
            Some(Some(open)) => open.iter().map(|term| term.text().to_owned()).collect(),
        }
    }

    fn open_parts(
        &self,
        named: &NamedModule<'_>,
        options: &AnalysisOptions,
    ) -> Result<Option<OpenParts>, Failure> {
        let parts = |terms| resolve_open_terms(named.file, &named.module, options, terms);
        self.open_memory.as_ref().map(parts).transpose()
    }
}

/// A module with the name that output gives it.
struct NamedModule<'a> {
    file: &'a str,
    module: SpirvModule,
    /// The overrides whose values its compiler assumed.
    unset: Vec<UnsetOverride>,
    /// The language of the file, if it is a source.
    language: Option<ShaderLanguage>,
}

/// A module as a file has it, with the inputs that the file and the options give.
struct ModuleFile<'a> {
    named: NamedModule<'a>,
    bytes: Vec<u8>,
    options: AnalysisOptions,
}

fn read_module_file<'a>(
    file: &'a str,
    compilation: &Compilation,
    options: &AnalysisOptions,
) -> Result<ModuleFile<'a>, Failure> {
    let source = load(file, compilation).map_err(|error| error.to_failure())?;
    let options = source.with_given_inputs(options);
    let module = entry_point::inputs::read_bound_module(&source.bytes, &options)
        .map_err(|refusal| Failure::input_message(placed_refusal_text(file, &refusal)))?;
    let named = NamedModule { file, module, unset: source.unset, language: source.language };
    Ok(ModuleFile { named, bytes: source.bytes, options })
}

/// Compares two shaders: one line for each entry point of `before`, or for the one in `options`.
///
/// # Errors
/// If a shader is invalid, or their interfaces differ.
pub fn compare_files(
    before: &str,
    after: &str,
    compilation: &Compilation,
    options: &AnalysisOptions,
    model: &Model,
    request: &RefineRequest,
) -> Result<Vec<RefineLine>, Failure> {
    let ModuleFile { named: first, options, .. } = read_module_file(before, compilation, options)?;
    let open = request.open_parts(&first, &options)?;
    let second = read_module_file(after, compilation, &options)?.named;
    compare_modules(&first, &second, &options, model, request, open.as_ref())
}

/// Compares the entry points of two modules.
fn compare_modules(
    before: &NamedModule<'_>,
    after: &NamedModule<'_>,
    options: &AnalysisOptions,
    model: &Model,
    request: &RefineRequest,
    open: Option<&OpenParts>,
) -> Result<Vec<RefineLine>, Failure> {
    let to_failure =
        |refusal: &entry_point::Refusal| Failure::input_message(placed_refusal_text(before.file, refusal));
    // Compilers emit some invalid modules for valid sources.
    let of_source = AnalysisOptions { language: before.language, ..options.clone() };
    let known = entry_point_options(before.file, &before.module, &before.unset, &of_source)
        .map_err(|refusal| to_failure(&refusal))?;
    let others = after.module.entry_points();
    let mut lines = Vec::with_capacity(known.len());
    for given in &known {
        let started = Instant::now();
        let entry = given.entry.clone().unwrap_or_default();
        // Compilers rename a single entry point.
        let other = match &others[..] {
            [only] if known.len() == 1 => (*only).to_owned(),
            _ if others.contains(&entry.as_str()) => entry.clone(),
            _ => {
                return Err(Failure::input_message(format!(
                    "{}: no entry point `{entry}`, which {} has; expected the output of a compiler for the same shader: pass \
                     `--entry NAME` to compare another one",
                    after.file, before.file
                )));
            }
        };
        require_whole_grid(given, "modules are compared over the whole grid")?;
        let pair = EntryPointPair { before, after, options: given, after_entry: &other };
        let compare = |grid, limit| pair.compare(model, request, open, grid, limit);
        let grid = if given.grid.is_none() { InputGrid::Chosen } else { InputGrid::Whole };
        let Some(mut found) = compare(grid, request.timeout / 4 * 3)? else { continue };
        // The search for an environment takes few invocations.
        if found.verdict == RefineVerdict::Unknown && given.grid.is_none() {
            let fewer = compare(InputGrid::Whole, request.timeout.saturating_sub(started.elapsed()))?;
            let breaks = fewer.filter(|fewer| fewer.verdict == RefineVerdict::Breaks);
            found = breaks.unwrap_or(found);
        }
        lines.push(RefineLine {
            before: before.file.to_owned(),
            after: after.file.to_owned(),
            entry,
            micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            ..comparison_line(&found, before, after, model, request)
        });
    }
    Ok(lines)
}

/// Contents of buffers that no option gives, by their words in `--buffer`, for pairs that are equal for the chosen ones.
const OTHER_CONTENTS: [&str; 3] = ["random", "iota", "ones"];

/// An entry point of two modules.
struct EntryPointPair<'a> {
    before: &'a NamedModule<'a>,
    after: &'a NamedModule<'a>,
    /// The options of `before`.
    options: &'a AnalysisOptions,
    /// The name in `after`.
    after_entry: &'a str,
}

impl EntryPointPair<'_> {
    /// Compares the entry points for chosen inputs.
    fn compare(
        &self,
        model: &Model,
        request: &RefineRequest,
        open: Option<&OpenParts>,
        grid: InputGrid,
        limit: Duration,
    ) -> Result<Option<Refinement>, Failure> {
        let EntryPointPair { before, after, options: given, after_entry: other } = *self;
        let stop = stop_after(limit);
        let choose = |module: &SpirvModule, given: &AnalysisOptions| {
            let until = DeadlinePredicate::new(stop_after(limit / 8));
            let searched = AnalysisOptions { deadline: Some(until), ..given.clone() };
            analysis::choose_inputs(module, &searched, request.inputs, grid)
        };
        let choice = choose(&before.module, given)
            .map_err(|refusal| Failure::input_message(placed_refusal_text(before.file, &refusal)))?;
        let mut needs = choice.needed_inputs(&before.module);
        let mut inputs = choice.all_choices(given);
        // Code that only AFTER has may need other inputs to be reached.
        let renamed = AnalysisOptions {
            entry: Some(other.to_owned()),
            unset_overrides: after.unset.clone(),
            ..given.clone()
        };
        if let Ok(after_choice) = choose(&after.module, &renamed) {
            for needed in after_choice.needed_inputs(&after.module).inputs {
                // Optimizers remove names.
                if !needs.inputs.iter().any(|known| known.option == needed.option) {
                    needs.inputs.push(needed);
                }
            }
            if after_choice.description(&renamed) != choice.description(given) {
                inputs.extend(after_choice.all_choices(&renamed));
            }
        }
        inputs.retain(|chosen| chosen.workgroups.is_empty());
        let query = RefinementQuery { model, budget: Budget::until(&stop), stop: &stop, open };
        let deadline = Some(DeadlinePredicate::new(stop_after(limit)));
        let compare = |chosen: &AnalysisOptions| {
            let (deadline, entry) = (deadline.clone(), given.entry.clone());
            let first = AnalysisOptions { deadline, entry, ..chosen.clone() };
            let second = AnalysisOptions { entry: Some(other.to_owned()), ..first.clone() };
            let first = KernelVersion { module: &before.module, options: &first };
            refine::refine(first, KernelVersion { module: &after.module, options: &second }, &query)
        };
        let answers = inputs.iter().map(compare).collect::<Result<Vec<_>, _>>().map_err(|refusal| {
            Failure::input_message(format!(
                "{} and {}: {refusal}; expected two modules with one interface, such as the input and the output of an optimizer",
                before.file, after.file
            ))
        })?;
        let answer = Refinement::combine(answers, &needs);
        let holds_for_contents = |answer: &Refinement| {
            matches!(answer.verdict, RefineVerdict::Refines | RefineVerdict::Stronger)
                && answer.coverage == RefinementCoverage::GivenInputs
        };
        if open.is_some()
            || request.inputs != InputMode::Auto
            || !answer.as_ref().is_some_and(holds_for_contents)
        {
            return Ok(answer);
        }
        // Equal contents for zeros prove little, so others are tried.
        let is_free = |at: &(u32, u32)| !given.buffers.contains_key(at) && !before.module.is_handle_at(*at);
        let free_buffers: Vec<(u32, u32)> = before.module.descriptors().into_iter().filter(is_free).collect();
        let mut equal_contents = Vec::new();
        for word in OTHER_CONTENTS.into_iter().filter(|_| !free_buffers.is_empty()) {
            let mut is_equal = true;
            for chosen in &inputs {
                let mut filled = chosen.clone();
                for at in &free_buffers {
                    let bytes = filled.buffers.get(at).map_or(DEFAULT_BYTES, |known| known.len() as u64);
                    filled.buffers.extend(fill_bytes(word, bytes).map(|contents| (*at, contents.into())));
                }
                match compare(&filled) {
                    Ok(mut found) if found.verdict == RefineVerdict::Breaks => {
                        let _ = write!(found.reason, ", with `--buffer SET.BINDING={word}` for each buffer");
                        return Ok(Some(found));
                    }
                    // Without an answer, or if BEFORE has no defined behaviour then, these contents say nothing.
                    found => is_equal &= found.is_ok_and(|found| holds_for_contents(&found)),
                }
            }
            equal_contents.extend(is_equal.then(|| format!("`{word}`")));
        }
        Ok(answer.map(|mut answer| {
            if !equal_contents.is_empty() {
                let _ = write!(answer.reason, "; also if each buffer holds {}", equal_contents.join(" or "));
            }
            answer
        }))
    }
}

/// Returns the reason of an answer, with the inputs that it depends on.
fn full_reason(found: &Refinement) -> String {
    let needs = found.needs.iter().cloned().map(needed_sentence);
    std::iter::once(found.reason.clone()).chain(needs).collect::<Vec<_>>().join("; ")
}

/// Returns the line of a comparison, without files, entry point and time.
fn comparison_line(
    found: &Refinement,
    before: &NamedModule<'_>,
    after: &NamedModule<'_>,
    model: &Model,
    request: &RefineRequest,
) -> RefineLine {
    let place = |named: &NamedModule<'_>, spot: &Spot| {
        let (file, line) = source_location(named.file, &named.module, spot.line, spot.place);
        let access = spot.writes.map(|writes| if writes { "write" } else { "read" }.to_owned());
        FindingPlace { file: Some(file), line, instruction: None, invocation: None, workgroup: None, access }
    };
    let difference = found.difference.as_ref().map(|difference| RefineDifference {
        kind: difference.kind.to_owned(),
        message: difference.message.clone(),
        before: difference.before.as_ref().map(|spot| place(before, spot)),
        after: difference.after.as_ref().map(|spot| place(after, spot)),
        environment: difference.environment.clone(),
    });
    RefineLine {
        verdict: found.verdict,
        reason: full_reason(found),
        cause: (found.verdict == RefineVerdict::Unknown).then(|| match found.needs.is_empty() {
            true => found.reason.clone(),
            false => "it depends on inputs that are not given".to_owned(),
        }),
        difference,
        ..empty_line(model, request)
    }
}

/// Returns the line of a comparison that is not answered.
fn empty_line(model: &Model, request: &RefineRequest) -> RefineLine {
    RefineLine {
        schema: REFINE_SCHEMA.to_owned(),
        model: model.name().to_owned(),
        open: request.open_words(),
        verdict: RefineVerdict::Unknown,
        ..RefineLine::default()
    }
}

/// The compilation of shaders and the terms of their comparison.
#[derive(Clone, Copy)]
pub struct CompilerRefinement<'a> {
    /// The compilation of sources to SPIR-V.
    pub compilation: &'a Compilation,
    pub options: &'a AnalysisOptions,
    /// The model that decides races and outcomes.
    pub model: &'a Model,
    /// The limits and the world.
    pub request: &'a RefineRequest,
}

impl CompilerRefinement<'_> {
    /// Adds the shortest list of passes and the smallest test that still break, to lines of a broken shader.
    ///
    /// # Errors
    /// If the shader itself is invalid.
    pub fn reduce(
        &self,
        subject: &RefineSubject,
        command: &str,
        lines: &mut [RefineLine],
    ) -> Result<(), Failure> {
        let breaks = |subject: &RefineSubject, command: &str| {
            self.compare(subject, command)
                .is_ok_and(|lines| lines.iter().any(|line| line.verdict == RefineVerdict::Breaks))
        };
        let words = read_module_file(&subject.path, self.compilation, self.options)
            .and_then(|read| to_binary(&subject.name, &read.bytes))?;
        let reduced =
            reduce_passes(command, &expand_passes(&words, command), |command| breaks(subject, command));
        let shortest = reduced.as_deref().unwrap_or(command);
        let smallest = subject.test.as_ref().and_then(|test| {
            let folder = TemporaryFolder::create().ok()?;
            let mut still_breaks = |test: &Test| {
                let smaller_subject = RefineSubject::from_test(&subject.name, test, folder.path());
                smaller_subject.is_ok_and(|smaller| breaks(&smaller, shortest))
            };
            let shrunk = shrink(test, MAX_SMALLER_TESTS, &|_| Vec::new(), &mut still_breaks);
            Some(litmus::print(&shrunk.test))
        });
        for line in lines.iter_mut().filter(|line| line.verdict == RefineVerdict::Breaks) {
            line.reduced.clone_from(&reduced);
            line.smallest.clone_from(&smallest);
        }
        Ok(())
    }

    /// Compiles a shader with a command line, and compares the entry points. A failure of the command is a
    /// line too.
    ///
    /// # Errors
    /// If the shader itself is invalid.
    pub fn compare(&self, subject: &RefineSubject, command: &str) -> Result<Vec<RefineLine>, Failure> {
        let started = Instant::now();
        let mut options = self.options.clone();
        if let Some((grid, subgroup_size)) = subject.dispatch {
            options.grid = options.grid.or(Some(grid));
            options.subgroup_size = options.subgroup_size.or(subgroup_size);
        }
        let ModuleFile { named: mut before, bytes, options } =
            read_module_file(&subject.path, self.compilation, &options)?;
        before.file = &subject.name;
        let open = self.request.open_parts(&before, &options)?;
        let words = to_binary(&subject.name, &bytes)?;
        // The command runs in a separate folder.
        let source = std::path::absolute(&subject.path).unwrap_or_else(|_| subject.path.clone().into());
        let line = command.replace("{source}", &quote_path(&source));
        // Some tools refuse debug lines or a newer form of the workgroup size.
        let compiled = run_compiler(&words, &line, &options).or_else(|failure| {
            let simplified = Some(simplify_module(&words)).filter(|simplified| *simplified != words);
            let simplified = simplified.filter(|_| failure.is_refusal);
            let retried = simplified.and_then(|words| run_compiler(&words, &line, &options).ok());
            retried.ok_or(failure)
        });
        let compared = compiled.and_then(|module| {
            let after = NamedModule { file: command, module, unset: Vec::new(), language: None };
            compare_modules(&before, &after, &options, self.model, self.request, open.as_ref())
                .map_err(|failure| CompilerFailure::new("not comparable", failure.report().to_string()))
        });
        let failed_line = |failure: CompilerFailure| RefineLine {
            before: subject.name.clone(),
            after: command.to_owned(),
            verdict: RefineVerdict::Failed,
            reason: failure.message,
            cause: Some(failure.cause.to_owned()),
            micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            ..empty_line(self.model, self.request)
        };
        Ok(compared.unwrap_or_else(|failure| vec![failed_line(failure)]))
    }
}

fn to_binary(file: &str, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    if bytes.starts_with(&SPIRV_MAGIC) {
        return Ok(without_source_language(bytes));
    }
    let assembled = spirv_reader::assemble_text(&String::from_utf8_lossy(bytes))
        .map_err(|refusal| Failure::input_message(placed_refusal_text(file, &refusal.into())))?;
    let bytes: Vec<u8> = assembled.words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Ok(without_source_language(&bytes))
}

/// A command line that wrote no comparable module.
struct CompilerFailure {
    /// The cause without names and numbers.
    cause: &'static str,
    message: String,
    /// True if the command itself ended with an error.
    is_refusal: bool,
}

impl CompilerFailure {
    fn new(cause: &'static str, message: String) -> CompilerFailure {
        CompilerFailure { cause, message, is_refusal: false }
    }
}

/// Runs a command line on a module and reads the module that it writes.
fn run_compiler(
    words: &[u8],
    command: &str,
    options: &AnalysisOptions,
) -> Result<SpirvModule, CompilerFailure> {
    let (bytes, printed) = run_command(words, command)?;
    if bytes.is_empty() {
        let message = format!(
            "the command wrote no {{out}}{printed}; expected a SPIR-V module: run `{command}` by hand"
        );
        return Err(CompilerFailure::new("the command wrote no {out}", message));
    }
    entry_point::inputs::read_bound_module(&bytes, options).map_err(|refusal| {
        let cause = "the command wrote an invalid module";
        CompilerFailure::new(cause, format!("{cause}: {refusal}"))
    })
}

/// Returns a path as a word of a shell.
fn quote_path(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Runs a command line, and returns the file that it wrote and its output.
fn run_command(words: &[u8], command: &str) -> Result<(Vec<u8>, String), CompilerFailure> {
    let cannot_run = |why: String| CompilerFailure::new("the command cannot run", why);
    let failed = |error: std::io::Error| cannot_run(error.to_string());
    let folder = TemporaryFolder::create().map_err(failed)?;
    let (input, output) = (folder.path().join("in.spv"), folder.path().join("out.spv"));
    std::fs::write(&input, words).map_err(failed)?;
    let line = command.replace("{in}", &quote_path(&input)).replace("{out}", &quote_path(&output));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {line}")]);
    let ended = run_to_end(shell, folder.path()).map_err(|why| cannot_run(format!("the command {why}")))?;
    let Some((status, printed)) = ended else {
        return Err(cannot_run("cannot run: no shell `sh`".to_owned()));
    };
    // The name of the folder is random.
    let parent = format!("{}/", folder.path().display());
    let first = printed.lines().find(|line| !line.trim().is_empty()).map(|line| line.replace(&parent, ""));
    if !status.success() {
        let message = first.map(|first| format!(": {first}")).unwrap_or_default();
        let message = format!("the command ended with {status}{message}");
        let failure = CompilerFailure::new("the command ended with an error", message);
        return Err(CompilerFailure { is_refusal: status.code().is_some(), ..failure });
    }
    Ok((files::read_file(&output, files::MAX_SHADER_BYTES).unwrap_or_default(), printed))
}

/// Returns true if a word of a command line is a pass.
fn is_pass(word: &str) -> bool {
    word.starts_with("--") || word.starts_with("-O")
}

/// Replaces `-O` and `-Os` of spirv-opt by the passes that it runs.
fn expand_passes(words: &[u8], command: &str) -> String {
    let is_list = |word: &&str| *word == "-O" || *word == "-Os";
    let Some(list) = command.split_whitespace().find(is_list) else { return command.to_owned() };
    if !command.contains("spirv-opt") {
        return command.to_owned();
    }
    let listing_command = command.replacen(list, &format!("{list} --print-all"), 1);
    let printed = run_command(words, &listing_command).map(|(_, printed)| printed).unwrap_or_default();
    let passes = printed.lines().filter_map(|line| line.strip_prefix("; IR before pass "));
    let passes: Vec<String> = passes.map(|pass| format!("--{}", pass.trim())).collect();
    match passes.is_empty() {
        true => command.to_owned(),
        false => command.replacen(list, &passes.join(" "), 1),
    }
}

/// Returns the shortest found command line that still breaks, if it is shorter than `command`.
fn reduce_passes(command: &str, expanded: &str, breaks: impl Fn(&str) -> bool) -> Option<String> {
    // The list of a preset may name internal passes.
    let line = if expanded != command && !breaks(expanded) { command } else { expanded };
    let words: Vec<&str> = line.split_whitespace().collect();
    let with_passes = |passes: &[usize]| {
        let is_kept = |(index, word): &(usize, &&str)| !is_pass(word) || passes.contains(index);
        words.iter().enumerate().filter(is_kept).map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
    };
    let mut passes: Vec<usize> = (0..words.len()).filter(|index| is_pass(words[*index])).collect();
    let mut runs = 0;
    // At the limit, the shortest list so far remains.
    let _ = ddmin(&mut passes, |fewer| {
        if runs == MAX_REDUCTIONS {
            return Err(());
        }
        runs += 1;
        Ok(!fewer.is_empty() && breaks(&with_passes(fewer)))
    });
    let shortest = with_passes(&passes);
    (shortest != command).then_some(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_passes_is_reduced_to_those_that_break() {
        let breaks = |line: &str| line.contains("--c ") && line.contains("--e ");
        let command = "tool --a --b --c --d --e --f {in} -o {out}";
        let reduced = reduce_passes(command, command, breaks);
        assert_eq!(reduced.as_deref(), Some("tool --c --e {in} -o {out}"));
        let shortest = "tool --c --e {in} -o {out}";
        assert_eq!(reduce_passes(shortest, shortest, breaks), None);
    }
}
