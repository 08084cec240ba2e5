//! The subcommands, one file each.

mod answer_status;
pub mod bench;
pub mod check;
pub mod clauses;
pub mod codegen;
pub mod compare;
pub mod compile;
pub mod convert;
pub mod coverage;
pub mod diff;
pub mod explain;
pub mod generate;
pub mod lint;
pub mod lists;
pub mod lsp;
pub mod merge;
pub mod patterns;
pub mod plot;
pub mod race;
pub mod record;
pub mod reference;
pub mod refine;
pub mod report;
pub mod repro;
pub mod run;
pub mod serve;
pub mod tune;
pub mod worker;

use crate::arguments::Command;
use crate::exit::{Failure, Outcome};
use crate::help;

/// Runs a command.
///
/// # Errors
/// Returns the error that ended it early.
pub fn dispatch(command: Command, quiet: bool, verbose: bool) -> Result<Outcome, Failure> {
    match command {
        Command::Run(arguments) => run::run(&arguments, quiet),
        Command::Check(arguments) => check::check(&arguments, quiet),
        Command::Compile(arguments) => compile::compile(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments, quiet),
        Command::Convert(arguments) => convert::convert(&arguments),
        Command::Devices(arguments) => lists::print_devices(&arguments),
        Command::Compilers(arguments) => lists::print_compilers(&arguments),
        Command::Models(arguments) => lists::print_models(&arguments),
        Command::Tests(arguments) => lists::print_tests(&arguments),
        Command::Completions { shell } => lists::print_completions(shell),
        Command::Help(arguments) => help::print_help(&arguments),
        Command::Man { command } => lists::print_manual_page(command.as_deref()),
        Command::Worker(arguments) => worker::worker(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments, quiet),
        Command::Race(arguments) => race::race(&arguments, quiet, verbose),
        Command::Record(arguments) => record::record(&arguments, quiet),
        Command::Generate(arguments) => generate::generate(&arguments, quiet),
        Command::Clauses(arguments) => clauses::clauses(&arguments, quiet),
        Command::Refine(arguments) => refine::refine(&arguments, quiet),
        Command::Reference(arguments) => reference::reference(&arguments),
        Command::Tune(arguments) => tune::tune(&arguments, quiet),
        Command::Codegen(arguments) => codegen::codegen(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments, quiet),
        Command::Lint(arguments) => lint::lint(&arguments, quiet),
        Command::Lsp { .. } => lsp::lsp(),
        Command::Serve(arguments) => serve::serve(&arguments, quiet),
        Command::Patterns(arguments) => patterns::patterns(&arguments),
        Command::Faults(arguments) => lists::print_faults(arguments.format),
        Command::Repro(arguments) => repro::repro(&arguments, quiet),
        Command::Report(arguments) => report::report(&arguments, quiet),
        Command::Plot(arguments) => plot::plot(&arguments, quiet),
        Command::Diff(arguments) => diff::diff(&arguments, quiet),
        Command::Merge(arguments) => merge::merge(&arguments, quiet),
    }
}
