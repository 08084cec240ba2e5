//! `codegen`: the machine code that drivers generate for tests.

use std::path::Path;

use campaign::compilers::baselines::{baselines, differences, file_of};
use campaign::compilers::engine::Engine;
use campaign::compilers::explore::{explore, is_broken};
use campaign::compilers::relaxations::compared;
use campaign::compilers::targets::{CompilerTarget, targets};
use campaign::compilers::{CodegenRequest, lines, load};
use codegen::{CodeBaseline, Form};
use results::wire::{CodegenLine, CodegenOrderVerdict, CodegenVerdict};
use results::write::codegen::{self as text, CodegenView, Figures};
use results::write::json::Lines;
use results::write::matrix;

use crate::arguments::{Codegen, CodegenEmit, CodegenFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{Data, cannot_print, make_folder, reject, say, write_file};

/// Runs the command.
///
/// # Errors
/// Returns the error that ended it before any compilation.
pub fn codegen(arguments: &Codegen) -> Result<Outcome, Failure> {
    let orders_alone = arguments.emit == Some(CodegenEmit::Order) && !arguments.explore;
    if arguments.format == CodegenFormat::Html && !orders_alone {
        return Err(Failure::input_message("`--format html` needs `--emit order`"));
    }
    let mut outcome = Outcome::Success;
    let (items, rejected) = load(&arguments.tests, arguments.suite.as_deref())?;
    rejected.iter().for_each(|failure| reject(&mut outcome, failure));
    if items.is_empty() && outcome == Outcome::Success {
        return Err(Failure::input_message("no test to compile: name a test or `--suite NAME`"));
    }
    let targets = targets(&arguments.device, arguments.mesa.as_deref())?;
    let looks_close =
        arguments.explore || arguments.baseline.is_some() || arguments.emit == Some(CodegenEmit::Diff);
    let forms = match arguments.form.as_slice() {
        // The explorer runs compute dispatches only; one fixed set of forms keeps baselines comparable.
        [] if looks_close => Form::RUN.to_vec(),
        [] => Form::default_forms(),
        named => named.to_vec(),
    };
    let asked = CodegenRequest::new(items, targets, forms, arguments.lanes, arguments.tests.is_empty());
    let engine = Engine::new(arguments.timeout, arguments.misbehave.clone())?;
    let printer = Printer { data: Data::new(), format: arguments.format };
    outcome.note(match (&arguments.baseline, arguments.emit) {
        _ if arguments.explore => print_explored(&engine, &asked, arguments.edits, printer)?,
        (Some(folder), _) => against_baselines(&engine, &asked, folder, arguments.bless, printer)?,
        (None, Some(CodegenEmit::Diff)) => print_relaxations(&engine, &asked, printer)?,
        (None, emit) => print_compiled(&engine, &asked, emit.and_then(view_of_flag), printer)?,
    });
    Ok(outcome)
}

/// Converts the flag to the part of kernels to print.
fn view_of_flag(emit: CodegenEmit) -> Option<CodegenView> {
    match emit {
        CodegenEmit::Asm => Some(CodegenView::Code),
        CodegenEmit::Ir => Some(CodegenView::Forms),
        CodegenEmit::Order => Some(CodegenView::Orders),
        CodegenEmit::Diff => None,
    }
}

/// Standard output in the requested format.
struct Printer {
    data: Data,
    format: CodegenFormat,
}

impl Printer {
    /// Prints lines as one JSON object each, or as the text that `text` formats.
    fn lines<T: serde::Serialize>(
        &mut self,
        lines: &[T],
        text: impl Fn(&[T]) -> String,
    ) -> Result<(), Failure> {
        if self.format == CodegenFormat::Json {
            let mut out = Lines::new(&mut self.data);
            return lines.iter().try_for_each(|line| out.write(line)).map_err(cannot_print);
        }
        self.text(&text(lines))
    }

    /// Prints a text if the format is text.
    fn text(&mut self, text: &str) -> Result<(), Failure> {
        if self.format == CodegenFormat::Text { self.data.print(text) } else { Ok(()) }
    }
}

/// Compiles every kernel and prints the result.
fn print_compiled(
    engine: &Engine,
    asked: &CodegenRequest,
    shown: Option<CodegenView>,
    mut printer: Printer,
) -> Result<Outcome, Failure> {
    let (mut outcome, mut figures, mut page) = (Outcome::Success, Vec::new(), Vec::new());
    lines::campaign(engine, asked, shown, |target, lines| {
        let mut of_target = Figures::new(&target.name);
        lines.iter().for_each(|line| of_target.add(line));
        figures.push(of_target);
        if lines.iter().any(is_wrong) {
            outcome.note(Outcome::RuleBroken);
        }
        printer.lines(&lines, |lines| text::lines(lines, shown))?;
        if printer.format == CodegenFormat::Html {
            page.extend(lines);
        }
        Ok(())
    })?;
    match printer.format {
        CodegenFormat::Html => printer.data.print(&matrix::page(&page))?,
        _ => printer.text(&text::figures(&figures))?,
    }
    Ok(outcome)
}

/// Returns true if a compiler crashed on a test, or lost an order that the test requires.
fn is_wrong(line: &CodegenLine) -> bool {
    let orders = line.kernels.iter().flat_map(|kernel| &kernel.orders);
    let loses = orders.into_iter().any(|order| order.code.verdict == CodegenOrderVerdict::Lost);
    line.verdict == CodegenVerdict::Crashes || loses
}

/// Prints the effect of each relaxation on machine code.
fn print_relaxations(
    engine: &Engine,
    asked: &CodegenRequest,
    mut printer: Printer,
) -> Result<Outcome, Failure> {
    let mut all = Vec::new();
    compared(engine, asked, &say, |_, lines| {
        printer.lines(&lines, text::differences)?;
        all.extend(lines);
        Ok(())
    })?;
    printer.text(&text::diff_table(&all))?;
    Ok(Outcome::Success)
}

/// Explores the machine code for forbidden outcomes; with `edits`, checks that mutations of it are detected.
fn print_explored(
    engine: &Engine,
    asked: &CodegenRequest,
    edits: bool,
    mut printer: Printer,
) -> Result<Outcome, Failure> {
    let (mut outcome, mut all, mut all_edits) = (Outcome::Success, Vec::new(), Vec::new());
    explore(engine, asked, edits, |_, (lines, edited)| {
        printer.lines(&edited, text::edits)?;
        all_edits.extend(edited);
        if !edits {
            if lines.iter().any(is_broken) {
                outcome.note(Outcome::RuleBroken);
            }
            printer.lines(&lines, text::explored)?;
        }
        all.extend(lines);
        Ok(())
    })?;
    printer.text(&if edits { text::edit_table(&all_edits) } else { text::explore_table(&all) })?;
    Ok(outcome)
}

/// Writes a folder of baselines or compares with it. A difference is printed for review and does not change
/// the exit code.
fn against_baselines(
    engine: &Engine,
    asked: &CodegenRequest,
    folder: &Path,
    bless: bool,
    mut printer: Printer,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Success;
    baselines(engine, asked, |target: &CompilerTarget, (now, crashed)| {
        for how in crashed {
            say(&format!("{}: {how}", target.name));
            outcome.note(Outcome::RuleBroken);
        }
        let path = file_of(folder, target);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) if !bless => Some(text),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::of_file(&path, error));
            }
            _ => None,
        };
        let Some(text) = text else {
            let about = [target.plain_name().to_owned(), target.driver()];
            make_folder(folder)?;
            write_file(&path, now.to_text(&about).as_bytes())?;
            return printer.text(&format!("{}: {} kernels written\n", path.display(), now.sections.len()));
        };
        let old = CodeBaseline::parse(&text)
            .map_err(|error| Failure::input_message(format!("{}: {error}", path.display())))?;
        printer.text(&differences(&old, &now, asked.whole, &path))
    })?;
    Ok(outcome)
}
