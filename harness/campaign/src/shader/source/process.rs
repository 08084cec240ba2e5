//! Runs compilers and reads their messages.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs};

use runner::memory_limit;

use crate::files;
use crate::temporary::TemporaryFolder;

/// Time limit of a compiler.
const COMPILER_TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum size in bytes of a compiler's output.
const MAX_OUTPUT: u64 = 64 << 20;

/// The interval between checks of memory and output.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The maximum number of lines of a compiler's message.
const MAX_LINES: usize = 20;

/// Runs a program to its end, with an empty standard input. Returns its status and output, or `None` if the
/// program does not exist.
pub fn run_to_end(command: Command, folder: &Path) -> Result<Option<(ExitStatus, String)>, String> {
    run_within(COMPILER_TIMEOUT, command, folder)
}

/// As [`run_to_end`], with a time limit.
pub fn run_within(
    limit: Duration,
    mut command: Command,
    folder: &Path,
) -> Result<Option<(ExitStatus, String)>, String> {
    let to_message = |error: std::io::Error| error.to_string();
    let output_path: PathBuf = folder.join("printed");
    let output = fs::File::create(&output_path).map_err(to_message)?;
    let errors = output.try_clone().map_err(to_message)?;
    let command = command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let Some(status) = wait_within_limits(limit, command, folder)? else {
        return Ok(None);
    };
    let bytes = fs::read(&output_path).map_err(to_message)?;
    Ok(Some((status, strip_control_sequences(&String::from_utf8_lossy(&bytes)))))
}

/// Starts a program that writes into a folder and waits for it, within the limits on time, memory and output.
/// Returns `None` if the program does not exist.
fn wait_within_limits(
    limit: Duration,
    command: &mut Command,
    folder: &Path,
) -> Result<Option<ExitStatus>, String> {
    let to_message = |error: std::io::Error| error.to_string();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    memory_limit::prefer_for_oom_killer(&child);
    let since = Instant::now();
    let mut checked = since;
    loop {
        if let Some(status) = child.try_wait().map_err(to_message)? {
            return Ok(Some(status));
        }
        let reason = if since.elapsed() > limit {
            Some(format!("did not end within {} seconds", limit.as_secs()))
        } else if checked.elapsed() > CHECK_INTERVAL {
            checked = Instant::now();
            describe_exceeded_limit(&child, folder)
        } else {
            None
        };
        if let Some(reason) = reason {
            memory_limit::kill_descendants(&child);
            child.kill().and_then(|()| child.wait()).map_err(to_message)?;
            return Err(reason);
        }
        sleep(Duration::from_millis(2));
    }
}

/// Describes the limit on memory or output that a program exceeds.
fn describe_exceeded_limit(child: &Child, folder: &Path) -> Option<String> {
    let limit = memory_limit::limit();
    if let Some(used) = memory_limit::usage_above_limit(child, limit) {
        let (used, limit) = (used >> 20, limit >> 20);
        return Some(format!(
            "used {used} MiB of memory; the limit is {limit} MiB: raise it with `--max-memory`"
        ));
    }
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let written: u64 = files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
    (written > MAX_OUTPUT).then(|| format!("wrote more than {} MiB", MAX_OUTPUT >> 20))
}

/// Runs a command line on the text of a file and returns the new text: its standard output, or the file that
/// `{out}` names. `{in}` is the file; `{defines}` are the definitions as `-DNAME=VALUE`.
///
/// # Errors
/// The reason, and the standard error of the command.
pub fn run_preprocessor(file: &str, command: &str, defines: &[String]) -> Result<String, (String, String)> {
    let failed = |error: std::io::Error| (error.to_string(), String::new());
    let folder = TemporaryFolder::create().map_err(failed)?;
    let (output, errors) = (folder.path().join("output"), folder.path().join("errors"));
    let out = folder.path().join("out");
    let quote = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let defined: Vec<String> = defines.iter().map(|define| quote(&format!("-D{define}"))).collect();
    let line = command
        .replace("{in}", &quote(file))
        .replace("{out}", &quote(&out.display().to_string()))
        .replace("{defines}", &defined.join(" "));
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).stdin(fs::File::open(file).map_err(failed)?);
    shell
        .stdout(fs::File::create(&output).map_err(failed)?)
        .stderr(fs::File::create(&errors).map_err(failed)?);
    let error_output = || {
        let bytes = fs::read(&errors).unwrap_or_default();
        let message = remove_noise(&strip_control_sequences(&String::from_utf8_lossy(&bytes)), file);
        if message.is_empty() { message } else { format!("{message}\n") }
    };
    match wait_within_limits(COMPILER_TIMEOUT, &mut shell, folder.path()) {
        Ok(Some(status)) if status.success() => {}
        Ok(Some(status)) => return Err((format!("ended with {status}"), error_output())),
        Ok(None) => return Err(("cannot run: no shell `sh`".to_owned(), String::new())),
        Err(why) => return Err((why, error_output())),
    }
    let written = if command.contains("{out}") { out } else { output };
    let text = files::read_file(&written, files::MAX_SHADER_BYTES).map_err(failed)?;
    let text = String::from_utf8(text).map_err(|_| ("wrote no UTF-8".to_owned(), error_output()))?;
    if text.trim().is_empty() { Err(("wrote nothing".to_owned(), error_output())) } else { Ok(text) }
}

/// Returns the path of an executable, as a shell finds it.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains(std::path::MAIN_SEPARATOR) {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let name = format!("{name}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(&name)).find(|path| path.is_file())
}

/// Returns the last word of the first line that `--version` prints.
pub fn program_version(program: &Path, folder: &Path) -> String {
    version_line(program, folder).rsplit(' ').next().unwrap_or_default().to_owned()
}

/// Returns the first line that `--version` prints. Each program runs once.
pub fn version_line(program: &Path, folder: &Path) -> String {
    static KNOWN: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    let versions = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(version) = versions().get(program) {
        return version.clone();
    }
    let mut command = Command::new(program);
    command.arg("--version");
    let printed = run_to_end(command, folder).ok().flatten().filter(|(status, _)| status.success());
    let output = printed.map(|(_, said)| said).unwrap_or_default();
    let version = output.lines().next().unwrap_or_default().to_owned();
    versions().insert(program.to_owned(), version.clone());
    version
}

/// Removes terminal control sequences: some compilers color messages even without a terminal.
fn strip_control_sequences(output: &str) -> String {
    let mut plain = String::with_capacity(output.len());
    let mut rest = output.chars();
    while let Some(next) = rest.next() {
        match next {
            // A sequence `ESC [ … letter`, `ESC ] … BEL`, or two characters.
            '\u{1b}' => match rest.next() {
                Some('[') => drop(rest.by_ref().find(|c| ('@'..='~').contains(c))),
                Some(']') => drop(rest.by_ref().find(|c| matches!(c, '\u{7}' | '\u{1b}' | '\n'))),
                _ => {}
            },
            '\n' | '\t' => plain.push(next),
            other if results::escape::needs_escape(other) => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Removes lines without information from a compiler's output.
pub fn remove_noise(output: &str, file: &str) -> String {
    let is_informative = |line: &&str| {
        !line.trim().is_empty()
            && line.trim() != file
            && !line.contains("No code generated.")
            && !line.starts_with("SPIR-V is not generated")
    };
    let strip = |line: &str| line.strip_prefix("ERROR: ").unwrap_or(line).trim_end().to_owned();
    output.lines().filter(is_informative).take(MAX_LINES).map(strip).collect::<Vec<_>>().join("\n")
}

/// Describes a signal that ended a compiler; empty if it exited.
pub fn describe_crash(status: &ExitStatus, program: &str) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(status) {
        return format!("{program} crashed (signal {signal})\n");
    }
    String::new()
}

/// Returns the first position in a file that a message names: `FILE:LINE`, `FILE:LINE:COLUMN` or
/// `FILE(LINE)`.
pub fn message_position(message: &str, file: &str) -> Option<(u32, u32)> {
    message.match_indices(file).find_map(|(at, _)| {
        let rest = message[at + file.len()..].strip_prefix([':', '('])?;
        let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
        let line = numbers.next()?.parse().ok().filter(|line| *line > 0)?;
        let column = rest.find([':', ')', ' ', '\n']).filter(|end| rest[*end..].starts_with(':'));
        let column = column.and_then(|_| numbers.next()?.parse().ok()).filter(|column| *column > 0);
        Some((line, column.unwrap_or(1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_in_messages_of_each_compiler() {
        let cases = [
            ("ERROR: a/k.comp:7: '' :  syntax error", Some((7, 1))),
            ("error: no definition\n  ┌─ a/k.comp:5:13\n", Some((5, 13))),
            ("a/k.comp:3:9: error: expected ';'", Some((3, 9))),
            ("a/k.comp(12): error 20001: unexpected", Some((12, 1))),
            ("ERROR: other.glsl:2: 'x' : undeclared identifier", None),
            ("a/k.comp: no such thing", None),
        ];
        for (message, expected) in cases {
            assert_eq!(message_position(message, "a/k.comp"), expected, "{message}");
        }
    }

    #[test]
    fn colours_of_compilers_are_removed() {
        let cases = [
            (
                "\u{1b}[0m\u{1b}[1m\u{1b}[38;5;9merror\u{1b}[0m: no\n  ┌─ a.wgsl:1:2\r\n",
                "error: no\n  ┌─ a.wgsl:1:2\n",
            ),
            ("\u{1b}]8;;file:a\u{7}a.wgsl:3\u{1b}]8;;\u{7}\tis \u{202e}wrong\u{1b}", "a.wgsl:3\tis wrong"),
            ("é 日本 `x`", "é 日本 `x`"),
        ];
        for (output, expected) in cases {
            assert_eq!(strip_control_sequences(output), expected);
        }
    }

    #[test]
    fn a_preprocessor_reads_and_writes_text() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("a b.wgsl");
        fs::write(&file, "size {{N}}\n")?;
        let file = file.display().to_string();
        let cases = [
            ("sed 's/{{N}}/64/'", Ok("size 64\n")),
            ("sed 's/{{N}}/64/' {in} > {out}", Ok("size 64\n")),
            ("echo {defines}", Ok("-DN=a b -DM\n")),
            ("echo wrong >&2; exit 3", Err("ended with exit status: 3")),
            ("true", Err("wrote nothing")),
        ];
        for (command, expected) in cases {
            let new = run_preprocessor(&file, command, &["N=a b".to_owned(), "M".to_owned()]);
            let new = new.as_deref().map_err(|(why, _)| why.as_str());
            assert_eq!(new, expected, "{command}");
        }
        Ok(())
    }
}
