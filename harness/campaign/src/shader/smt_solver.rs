//! Installed SMT solvers, which get a script as a file and print their answer.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::shader::source::{describe_crash, find_program, run_within, version_line};
use crate::temporary::TemporaryFolder;

/// The time limit of a question.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(3);

/// A question that needs what proofs need of a solver, and the value of `x` in its only model.
const TRIAL_SCRIPT: &str = "(set-option :produce-models true)
(set-logic QF_UFBV)
(declare-fun f ((_ BitVec 8)) (_ BitVec 8))
(define-fun x () (_ BitVec 8) (f #x01))
(assert (= (bvmul x (_ bv3 8)) ((_ zero_extend 4) #x9)))
(check-sat)
(get-value (x))
";
const TRIAL_VALUES: [&str; 3] = ["#x03", "#b00000011", "bv3"];

/// A solver of `PATH`.
#[derive(Clone, Debug)]
pub struct InstalledSolver {
    program: PathBuf,
    /// The name and the version.
    pub name: String,
}

impl InstalledSolver {
    /// Finds a solver by the name of its program, and tries it.
    ///
    /// # Errors
    /// If it is not installed or answers a trial question wrongly.
    pub fn find(name: &str) -> Result<InstalledSolver, Failure> {
        let program = find_program(name).ok_or_else(|| {
            let text =
                format!("{name} is not installed: install the package {name}, or leave out `--solver`");
            Failure::environment_message(text)
        })?;
        let folder = TemporaryFolder::create().map_err(Failure::environment_error)?;
        let line = version_line(&program, folder.path());
        let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        let version =
            line.split(' ').find(is_version).map_or_else(String::new, |version| format!(" {version}"));
        let solver = InstalledSolver { program, name: format!("{name}{version}") };
        let answer = solver.run(TRIAL_SCRIPT);
        let is_right = |said: &String| {
            said.starts_with("sat\n") && TRIAL_VALUES.iter().any(|value| said.contains(value))
        };
        if answer.as_ref().is_ok_and(is_right) {
            return Ok(solver);
        }
        let said = answer.unwrap_or_else(|why| why);
        let first = said.lines().next().unwrap_or("nothing");
        Err(Failure::environment_message(format!(
            "{} answers a trial question of SMT-LIB 2.6 (QF_UFBV) with `{first}`: install a newer {name}",
            solver.name
        )))
    }

    /// Runs the solver on a script and returns what it prints: nothing if a limit ended it.
    ///
    /// # Errors
    /// The reason why it gives no answer.
    pub fn run(&self, script: &str) -> Result<String, String> {
        let to_message = |error: std::io::Error| error.to_string();
        let folder = TemporaryFolder::create().map_err(to_message)?;
        let file: &Path = &folder.path().join("question.smt2");
        std::fs::write(file, script).map_err(to_message)?;
        let mut command = Command::new(&self.program);
        command.arg(file);
        let since = Instant::now();
        match run_within(QUESTION_TIMEOUT, command, folder.path()) {
            Ok(Some((status, said))) => {
                let crash = describe_crash(&status, &self.name);
                if crash.is_empty() { Ok(said) } else { Err(crash.trim_end().to_owned()) }
            }
            Ok(None) => Err("it cannot be started".to_owned()),
            Err(_) if since.elapsed() >= QUESTION_TIMEOUT => Ok(String::new()),
            Err(why) => Err(why),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn crashes_and_limits_of_programs() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("smt");
        let cases = [
            ("read line < $1; echo $line", Ok("(check-sat)\n")),
            ("kill -9 $$", Err("smt 1 crashed (signal 9)")),
            ("echo sat; exec sleep 60", Ok("")),
        ];
        for (command, expected) in cases {
            std::fs::write(&program, format!("#!/bin/sh\n{command}\n"))?;
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
            let solver = InstalledSolver { program: program.clone(), name: "smt 1".to_owned() };
            let answer = solver.run("(check-sat)\n");
            assert_eq!(answer.as_deref().map_err(String::as_str), expected, "{command}");
        }
        Ok(())
    }
}
