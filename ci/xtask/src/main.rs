//! Maintenance tasks of the repository. Without arguments the program lists them.

mod bless;
mod dependencies;
mod fast;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

/// A task: name, summary and function.
struct Chore {
    name: &'static str,
    summary: &'static str,
    run: fn(&std::path::Path) -> Result<(), ChoreError>,
}

/// Every task, in the order of the list.
const CHORES: &[Chore] = &[
    Chore { name: "tidy", summary: "refuse what does not belong in the repository", run: tidy::run },
    Chore {
        name: "dependencies",
        summary: "refuse dependencies by deny.toml, where cargo deny is not at hand",
        run: dependencies::run,
    },
    Chore { name: "fast", summary: "run the tests, but for those that take long", run: fast::run },
    Chore { name: "bless", summary: "run the tests and accept every new snapshot", run: bless::run },
];

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
enum ChoreError {
    /// The repository violates rules, which have been printed.
    #[error("{0} rule violations")]
    Untidy(usize),
    /// Dependencies violate rules, which have been printed.
    #[error("{0} dependencies refused")]
    Refused(usize),
    /// The rules on dependencies could not be applied.
    #[error(transparent)]
    Rules(#[from] dependencies::RulesError),
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] tidy::ReadError),
    /// A command could not be started.
    #[error("could not start cargo: {0}")]
    Start(std::io::Error),
    /// A command failed and has printed the reason.
    #[error("cargo ended with {0}")]
    Command(std::process::ExitStatus),
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (name, rest) = (arguments.next(), arguments.next());
    let (Some(name), None) = (name, rest) else {
        println!("usage: cargo xtask CHORE\n");
        for chore in CHORES {
            println!("  {:12} {}", chore.name, chore.summary);
        }
        return ExitCode::SUCCESS;
    };
    let Some(chore) = CHORES.iter().find(|chore| chore.name == name) else {
        eprintln!("xtask: there is no chore {name:?}; `cargo xtask` lists them");
        return ExitCode::from(2);
    };
    match (chore.run)(&repository_root()) {
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
