//! `codegen`: the machine code that drivers generate for tests and shaders.

use std::path::Path;

use campaign::compilers::baselines::{baseline_path, compute_baselines, describe_differences};
use campaign::compilers::engine::CompilerEngine;
use campaign::compilers::explore::{breaks_model, explore_devices};
use campaign::compilers::relaxations::compare_relaxations;
use campaign::compilers::shader_code::{compile_shader_lines, load_shader_kernels, name_kernels_uniquely};
use campaign::compilers::targets::{CompilerTarget, select_targets};
use campaign::compilers::{CodegenRequest, code_lines, load_tests};
use campaign::shader::source::{Compilation, is_shader};
use codegen::{CodeBaseline, Form};
use results::wire::{CodegenLine, CodegenOrderVerdict, CodegenOrdered, CodegenVerdict};
use results::write::codegen::{self as text, CodegenTotals, CodegenView};
use results::write::json::JsonLinesWriter;
use results::write::matrix;

use super::race::files::collect_shader_files;
use crate::arguments::{Codegen, CodegenEmit, CodegenFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{
    StandardOutput, create_folder, output_failure, print_message, report_rejected, write_file,
};

/// Runs the command.
///
/// # Errors
/// Returns the error that ended it before any compilation.
pub fn codegen(arguments: &Codegen) -> Result<Outcome, Failure> {
    let only_orders = arguments.emit == Some(CodegenEmit::Order) && !arguments.explore;
    if arguments.format == CodegenFormat::Html && !only_orders {
        return Err(Failure::input_message("`--format html` needs `--emit order`"));
    }
    let (shaders, tests): (Vec<String>, Vec<String>) = arguments
        .tests
        .iter()
        .cloned()
        .partition(|argument| is_shader(argument) || has_only_shaders(argument));
    if !shaders.is_empty() {
        return codegen_shaders(arguments, &shaders, &tests);
    }
    let mut outcome = Outcome::Success;
    let (items, rejected) = load_tests(&arguments.tests, arguments.suite.as_deref())?;
    rejected.iter().for_each(|failure| report_rejected(&mut outcome, failure));
    if items.is_empty() {
        return match outcome {
            Outcome::Success => {
                Err(Failure::input_message("no test to compile: name a test or `--suite NAME`"))
            }
            rejected => Ok(rejected),
        };
    }
    let targets = select_targets(&arguments.device, arguments.mesa.as_deref())?;
    let needs_run_forms =
        arguments.explore || arguments.baseline.is_some() || arguments.emit == Some(CodegenEmit::Diff);
    // A single test on one device shows its code. Otherwise a table shows which kernels compile.
    let is_single = items.len() == 1 && targets.len() == 1 && arguments.format == CodegenFormat::Text;
    let shows_code = is_single && arguments.emit.is_none() && !needs_run_forms;
    let forms = match arguments.form.as_slice() {
        [] if shows_code => vec![Form::Merged],
        // The explorer runs compute dispatches only; one fixed set of forms keeps baselines comparable.
        [] if needs_run_forms => Form::DISPATCHED.to_vec(),
        [] => Form::default_forms(),
        named => named.to_vec(),
    };
    let request = CodegenRequest::new(items, targets, forms, arguments.lanes, arguments.tests.is_empty());
    let engine = compiler_engine(arguments)?;
    let printer = Printer { data: StandardOutput::new(), format: arguments.format };
    outcome.escalate_to(match (&arguments.baseline, arguments.emit) {
        _ if arguments.explore => print_explored(&engine, &request, arguments.edits, printer)?,
        (Some(folder), _) => compare_baselines(&engine, &request, folder, arguments.bless, printer)?,
        (None, Some(CodegenEmit::Diff)) => print_relaxations(&engine, &request, printer)?,
        (None, None) if shows_code => print_compiled(&engine, &request, Some(CodegenView::Code), printer)?,
        (None, emit) => print_compiled(&engine, &request, emit.and_then(to_view), printer)?,
    });
    Ok(outcome)
}

fn compiler_engine(arguments: &Codegen) -> Result<CompilerEngine, Failure> {
    CompilerEngine::new(arguments.timeout, arguments.misbehave.clone())
}

/// Returns true for a folder that has shaders and no tests.
fn has_only_shaders(argument: &str) -> bool {
    let has_tests = |folder: &str| {
        let files = walkdir::WalkDir::new(folder).into_iter().flatten();
        files.into_iter().any(|file| file.path().extension().is_some_and(|extension| extension == "litmus"))
    };
    Path::new(argument).is_dir()
        && collect_shader_files(&[argument.to_owned()], &Compilation::default()).is_ok()
        && !has_tests(argument)
}

/// Compiles shaders and prints their code and orders.
fn codegen_shaders(arguments: &Codegen, shaders: &[String], tests: &[String]) -> Result<Outcome, Failure> {
    let needs_tests =
        arguments.explore || arguments.baseline.is_some() || arguments.emit == Some(CodegenEmit::Diff);
    if let Some(test) = tests.first().or(arguments.suite.as_ref()) {
        return Err(Failure::input_message(format!(
            "`{test}` is a test; expected shaders alone, or tests alone"
        )));
    }
    if needs_tests || !arguments.form.is_empty() {
        return Err(Failure::input_message(
            "--explore, --baseline, --form and --emit diff are about tests: pass `--emit asm`, `ir` or `order` for a shader",
        ));
    }
    let (options, compilation) = (arguments.kernel.to_options(None)?, arguments.kernel.compilation()?);
    let targets = select_targets(&arguments.device, arguments.mesa.as_deref())?;
    let (mut outcome, mut kernels) = (Outcome::Success, Vec::new());
    for file in collect_shader_files(shaders, &compilation)? {
        match load_shader_kernels(&file.path, &compilation, &options) {
            Ok(loaded) => kernels.extend(loaded),
            Err(failure) => report_rejected(&mut outcome, &failure),
        }
    }
    if kernels.is_empty() && outcome != Outcome::Success {
        return Ok(outcome);
    }
    name_kernels_uniquely(&mut kernels);
    let is_single = kernels.len() == 1 && targets.len() == 1 && arguments.format == CodegenFormat::Text;
    let shows_forms = arguments.emit == Some(CodegenEmit::Ir);
    let engine = CompilerEngine { wants_representations: shows_forms, ..compiler_engine(arguments)? };
    let emit = arguments.emit;
    let printer = Printer { data: StandardOutput::new(), format: arguments.format };
    let print = |printer: &mut Printer, lines: &[CodegenLine]| {
        printer.print_lines(lines, |lines| match emit {
            None if is_single => {
                text::format_tests(lines, Some(CodegenView::Code))
                    + &text::format_tests(lines, Some(CodegenView::Orders))
            }
            None => text::format_failures(lines),
            Some(emit) => text::format_tests(lines, to_view(emit)),
        })
    };
    outcome.escalate_to(print_lines_of_devices(
        printer,
        |deliver| {
            targets.iter().try_for_each(|target| {
                deliver(&target.name, compile_shader_lines(&engine, target, &kernels, shows_forms))
            })
        },
        &print,
        matches!(emit, None | Some(CodegenEmit::Order)),
    )?);
    Ok(outcome)
}

/// Converts the flag to the part of kernels to print.
fn to_view(emit: CodegenEmit) -> Option<CodegenView> {
    match emit {
        CodegenEmit::Asm => Some(CodegenView::Code),
        CodegenEmit::Ir => Some(CodegenView::Forms),
        CodegenEmit::Order => Some(CodegenView::Orders),
        CodegenEmit::Diff => None,
    }
}

/// Standard output in the requested format.
struct Printer {
    data: StandardOutput,
    format: CodegenFormat,
}

impl Printer {
    /// Prints lines as one JSON object each, or as the text that `text` formats.
    fn print_lines<T: serde::Serialize>(
        &mut self,
        lines: &[T],
        text: impl Fn(&[T]) -> String,
    ) -> Result<(), Failure> {
        if self.format == CodegenFormat::Json {
            let mut out = JsonLinesWriter::new(&mut self.data);
            return lines.iter().try_for_each(|line| out.write(line)).map_err(output_failure);
        }
        self.print_text(&text(lines))
    }

    /// Prints a text if the format is text.
    fn print_text(&mut self, text: &str) -> Result<(), Failure> {
        if self.format == CodegenFormat::Text { self.data.print(text) } else { Ok(()) }
    }
}

/// Compiles every kernel and prints the result.
fn print_compiled(
    engine: &CompilerEngine,
    request: &CodegenRequest,
    view: Option<CodegenView>,
    printer: Printer,
) -> Result<Outcome, Failure> {
    print_lines_of_devices(
        printer,
        |deliver| {
            code_lines::compile_on_devices(engine, request, view, |target, lines| {
                deliver(&target.name, lines)
            })
        },
        &|printer, lines| printer.print_lines(lines, |lines| text::format_tests(lines, view)),
        view == Some(CodegenView::Orders),
    )
}

/// Prints the lines of a device.
type LinePrinter<'a> = &'a dyn Fn(&mut Printer, &[CodegenLine]) -> Result<(), Failure>;
/// Receives the lines of a device.
type LineSink<'a> = &'a mut dyn FnMut(&str, Vec<CodegenLine>) -> Result<(), Failure>;

/// Prints the lines that `compile` delivers for each device, and their totals.
///
/// If `needs_orders`, an order that is not decided is a missing answer.
fn print_lines_of_devices(
    mut printer: Printer,
    compile: impl FnOnce(LineSink<'_>) -> Result<(), Failure>,
    print: LinePrinter<'_>,
    needs_orders: bool,
) -> Result<Outcome, Failure> {
    let (mut outcome, mut figures, mut page) = (Outcome::Success, Vec::new(), Vec::new());
    let mut is_compiled = false;
    compile(&mut |device, lines| {
        let mut totals = CodegenTotals::new(device);
        lines.iter().for_each(|line| totals.add(line));
        is_compiled |= lines.iter().any(|line| line.verdict != CodegenVerdict::Skipped);
        figures.push(totals);
        if lines.iter().any(is_failure) {
            outcome.escalate_to(Outcome::RuleBroken);
        } else if let Some(why) = describe_undecided(&lines).filter(|_| needs_orders) {
            print_message(&format!("error: {device}: {why}"));
            outcome.escalate_to(Outcome::Environment);
        }
        print(&mut printer, &lines)?;
        if printer.format == CodegenFormat::Html {
            page.extend(lines);
        }
        Ok(())
    })?;
    match printer.format {
        CodegenFormat::Html => printer.data.print(&matrix::render_page(&page))?,
        _ => printer.print_text(&text::format_totals(&figures))?,
    }
    if !is_compiled {
        print_message(
            "error: nothing was compiled: `vk-litmus devices --compile-only` lists devices with machine code",
        );
        outcome.escalate_to(Outcome::Environment);
    }
    Ok(outcome)
}

/// Returns the orders of lines.
fn orders_of(lines: &[CodegenLine]) -> impl Iterator<Item = &CodegenOrdered> {
    let kernels = lines.iter().flat_map(|line| &line.kernels);
    kernels.flat_map(|kernel| &kernel.orders).map(|order| &order.code)
}

/// Returns true if a compiler crashed on a test, or lost an order that the test requires.
fn is_failure(line: &CodegenLine) -> bool {
    line.verdict == CodegenVerdict::Crashes
        || orders_of(std::slice::from_ref(line)).any(|order| order.verdict == CodegenOrderVerdict::Lost)
}

/// Describes the orders that are not decided, if any, with the reason of the first.
fn describe_undecided(lines: &[CodegenLine]) -> Option<String> {
    let is_undecided = |order: &&CodegenOrdered| {
        matches!(order.verdict, CodegenOrderVerdict::Unknown | CodegenOrderVerdict::NotCovered)
    };
    let why = &orders_of(lines).find(is_undecided)?.why;
    let (count, undecided) = (orders_of(lines).count(), orders_of(lines).filter(is_undecided).count());
    let subject = match undecided == count {
        true => "no order of accesses is decided".to_owned(),
        false => format!("{undecided} of {count} orders are not decided"),
    };
    Some(format!("{subject}: {why} (`--emit order` lists orders, `--emit asm` needs none)"))
}

/// Prints the effect of each relaxation on machine code.
fn print_relaxations(
    engine: &CompilerEngine,
    request: &CodegenRequest,
    mut printer: Printer,
) -> Result<Outcome, Failure> {
    let mut all = Vec::new();
    compare_relaxations(engine, request, &print_message, |_, lines| {
        printer.print_lines(&lines, text::format_ineffective)?;
        all.extend(lines);
        Ok(())
    })?;
    printer.print_text(&text::format_diff_table(&all))?;
    Ok(Outcome::Success)
}

/// Explores the machine code for forbidden outcomes; with `edits`, checks that mutations of it are detected.
fn print_explored(
    engine: &CompilerEngine,
    request: &CodegenRequest,
    edits: bool,
    mut printer: Printer,
) -> Result<Outcome, Failure> {
    let (mut outcome, mut all, mut all_edits) = (Outcome::Success, Vec::new(), Vec::new());
    explore_devices(engine, request, edits, |_, (lines, edited)| {
        printer.print_lines(&edited, text::format_surviving_edits)?;
        all_edits.extend(edited);
        if !edits {
            if lines.iter().any(breaks_model) {
                outcome.escalate_to(Outcome::RuleBroken);
            }
            printer.print_lines(&lines, text::format_explored)?;
        }
        all.extend(lines);
        Ok(())
    })?;
    printer.print_text(&if edits {
        text::format_edit_table(&all_edits)
    } else {
        text::format_explore_table(&all)
    })?;
    Ok(outcome)
}

/// Writes a folder of baselines or compares with it. A difference is printed for review and does not change
/// the exit code.
fn compare_baselines(
    engine: &CompilerEngine,
    request: &CodegenRequest,
    folder: &Path,
    bless: bool,
    mut printer: Printer,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Success;
    compute_baselines(engine, request, |target: &CompilerTarget, (current, crashed)| {
        for how in crashed {
            print_message(&format!("{}: {how}", target.name));
            outcome.escalate_to(Outcome::RuleBroken);
        }
        let path = baseline_path(folder, target);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) if !bless => Some(text),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::file_error(&path, error));
            }
            _ => None,
        };
        let Some(text) = text else {
            let about = [target.name_without_version().to_owned(), target.driver()];
            create_folder(folder)?;
            write_file(&path, current.to_text(&about).as_bytes())?;
            return printer.print_text(&format!(
                "{}: {} kernels written\n",
                path.display(),
                current.sections.len()
            ));
        };
        let old = CodeBaseline::parse(&text)
            .map_err(|error| Failure::input_message(format!("{}: {error}", path.display())))?;
        printer.print_text(&describe_differences(&old, &current, request.is_whole_suite, &path))
    })?;
    Ok(outcome)
}
