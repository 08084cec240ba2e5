//! Maintenance tasks of the repository. Without arguments the program lists them.

mod bless;
mod book;
mod error;
mod tests;
mod tidy;
mod times;

use std::path::PathBuf;
use std::process::ExitCode;

use self::error::ChoreError;

/// A task: name, summary and function.
struct Chore {
    name: &'static str,
    summary: &'static str,
    /// Takes the root of the repository and the arguments.
    run: fn(&std::path::Path, &[String]) -> Result<(), ChoreError>,
    /// The arguments it takes, as the usage shows them.
    arguments: &'static str,
}

/// Every task, in the order of the list.
const CHORES: &[Chore] = &[
    Chore { name: "tidy", summary: "check the rules of the repository", run: tidy::run, arguments: "" },
    Chore {
        name: "fast",
        summary: "run the tests that need no device and no minute, before a commit",
        run: tests::run_fast,
        arguments: "[PACKAGE…]",
    },
    Chore { name: "test", summary: "run every test", run: tests::run_all, arguments: "[PACKAGE…]" },
    Chore {
        name: "docs",
        summary: "write the pages of docs/reference that the program generates",
        run: book::write_reference,
        arguments: "",
    },
    Chore { name: "book", summary: "build the book in docs/ with mdbook", run: book::build, arguments: "" },
    Chore {
        name: "times",
        summary: "print the times of the last run as Markdown",
        run: times::run,
        arguments: "",
    },
    Chore {
        name: "bless",
        summary: "run the tests and accept every new snapshot",
        run: bless::run,
        arguments: "",
    },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        println!("usage: cargo xtask CHORE\n");
        for chore in CHORES {
            println!("  {:24} {}", format!("{} {}", chore.name, chore.arguments), chore.summary);
        }
        return ExitCode::SUCCESS;
    };
    let Some(chore) = CHORES.iter().find(|chore| chore.name == name) else {
        eprintln!("xtask: unknown chore {name:?}; `cargo xtask` lists them");
        return ExitCode::from(2);
    };
    let arguments: Vec<String> = arguments.collect();
    if let (Some(argument), "") = (arguments.first(), chore.arguments) {
        eprintln!("xtask {name}: takes no arguments, found {argument:?}");
        return ExitCode::from(2);
    }
    match (chore.run)(&repository_root(), &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the root of the workspace: two folders above this crate, whose path cargo sets.
fn repository_root() -> PathBuf {
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(manifest) => PathBuf::from(manifest).join("../.."),
        None => PathBuf::from("."),
    }
}
