//! Installed SMT solvers: what they decide, and answers that are none.

use std::io::Write as _;
use std::process::{Command, Stdio};

use prove::{ProofOptions, ProofReport, SmtSolver, UnprovedReason, prove};
use spirv_reader::{SpirvModule, read_module};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels");

type Run<'a> = &'a (dyn Fn(&str) -> Result<String, String> + Sync);

fn kernel(name: &str) -> Option<SpirvModule> {
    read_module(&std::fs::read(format!("{FOLDER}/{name}.spvasm")).ok()?).ok()
}

/// Attempts a proof in which the built-in solver decides nothing.
fn prove_with(module: &SpirvModule, run: Run<'_>) -> ProofReport {
    prove(
        module,
        &ProofOptions { steps: 1, ..ProofOptions::default() },
        None,
        Some(SmtSolver { name: "smt 1", run }),
    )
}

#[test]
fn a_solver_decides_what_the_built_in_one_leaves_open() {
    let module = kernel("rows-with-stride").unwrap();
    let right = prove_with(&module, &|_| Ok("unsat\n(error \"no model\")\n".to_owned()));
    assert!(right.is_proved && right.solver == "batsat, smt 1", "{right:?}");
    for (open, reason) in [("unknown\n", UnprovedReason::Budget), ("", UnprovedReason::Budget)] {
        let report = prove_with(&module, &|_| Ok(open.to_owned()));
        assert!(report.unproved.iter().any(|one| one.reason == reason), "{report:?}");
        assert!(!report.is_proved && report.solver == "batsat", "{report:?}");
    }
    let cases: [(Run<'_>, &str); 5] = [
        (&|_| Err("crashed".to_owned()), "crashed"),
        (&|_| Ok("sat\n".to_owned()), "`sat` without the requested values"),
        (&all_zero, "`sat` with values for which the question does not hold"),
        (
            &|_| Ok("(error \"line 3\")\n".to_owned()),
            "`(error \"line 3\")` instead of `sat`, `unsat` or `unknown`",
        ),
        (&|_| Ok("maybe".to_owned()), "`maybe` instead of `sat`, `unsat` or `unknown`"),
    ];
    for (run, expected) in cases {
        let report = prove_with(&module, run);
        let solver = "smt 1".to_owned();
        let expected = UnprovedReason::Solver { solver, why: expected.to_owned() };
        assert!(report.unproved.iter().any(|one| one.reason == expected), "{expected}: {report:?}");
        assert!(!report.is_proved && report.counterexamples.is_empty());
    }
}

/// Answers `sat` with zeros.
fn all_zero(script: &str) -> Result<String, String> {
    let names = script.split_once("(get-value (").map_or("", |(_, names)| names);
    let names = names.split([' ', ')', '\n']).filter(|name| name.starts_with('t'));
    Ok(format!("sat\n({})\n", names.map(|name| format!("({name} #x00)")).collect::<String>()))
}

/// Runs a program on a script.
fn run_program(program: &str, script: &str) -> std::io::Result<String> {
    let mut command = Command::new(program);
    command.args(if program == "z3" { ["-in", "-T:20"] } else { ["-q", "--lang=smt2"] });
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().into_iter().try_for_each(|mut input| input.write_all(script.as_bytes()))?;
    Ok(String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned())
}

/// Kernels that need no conditions, and whether they are proved.
const NAMES: [(&str, bool); 7] = [
    ("ticket", true),
    ("tree-reduction", true),
    ("barriers-in-loop", true),
    ("sign-of-shifted", false),
    ("neighbour", false),
    ("exit-before-barrier", false),
    ("narrowed-index", false),
];

/// Conditions are not searched for without steps of the built-in solver.
#[test]
fn installed_solvers_agree_with_the_built_in_one() {
    for program in ["z3", "cvc5"] {
        if run_program(program, "(exit)").is_err() {
            println!("1 skipped: needs {program}");
            continue;
        }
        let run = |script: &str| run_program(program, script).map_err(|error| error.to_string());
        for (name, is_proved) in NAMES {
            let report = prove_with(&kernel(name).unwrap(), &run);
            assert_eq!(report.is_proved, is_proved, "{program}: {name}: {report:?}");
        }
    }
}
