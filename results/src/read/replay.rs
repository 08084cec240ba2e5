//! Checks of the recorded command that repeats a run: readers show it to be copied into a shell.

use crate::wire::RunLine;

/// The options of a replay of a litmus test or of a test of forward progress.
const REPLAY_OPTIONS: [&str; 9] = [
    "--device",
    "--fault",
    "--instances",
    "--model",
    "--progress",
    "--repeat",
    "--seed",
    "--stress",
    "--suite",
];
/// Options that no replay has: they write files.
const WRITING_OPTIONS: [&str; 5] = ["--baseline", "--gtest_output", "--log", "--out", "--save-baseline"];

/// Returns true if the replay of a line is absent, or a command that only runs its test.
pub(super) fn is_replay(line: &RunLine) -> bool {
    if line.replay.is_empty() {
        return true;
    }
    let Some(words) = shell_words(&line.replay) else { return false };
    let [program, run, rest @ ..] = words.as_slice() else { return false };
    let mut flags = rest.iter().filter(|word| word.starts_with("--")).map(String::as_str);
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    let agrees = |flag: &str, value: &str| match words.iter().position(|word| word == flag) {
        Some(place) => words.get(place + 1).is_some_and(|word| word == value),
        None => true,
    };
    let is_number =
        |flag: &str| !words.iter().any(|word| word == flag) || number_after_flag(line, flag).is_some();
    program == "vk-litmus"
        && run == "run"
        && agrees("--seed", &line.seed.to_string())
        && is_number("--instances")
        && match line.shader {
            // A shader has the options of its inputs and of its compiler.
            Some(_) => flags.all(|flag| !WRITING_OPTIONS.contains(&name(flag).as_str())),
            None => flags.all(|flag| REPLAY_OPTIONS.contains(&name(flag).as_str())),
        }
}

/// Returns the number after a flag of a replay.
pub(super) fn number_after_flag(line: &RunLine, flag: &str) -> Option<u64> {
    let words = shell_words(&line.replay)?;
    let place = words.iter().position(|word| word == flag)?;
    words.get(place + 1)?.parse().ok()
}

/// Splits a command into words; `None` if a shell would do more than that.
fn shell_words(text: &str) -> Option<Vec<String>> {
    let is_plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "+-_./:@,=%".contains(c);
    let (mut words, mut chars, mut is_quoted) = (vec![String::new()], text.chars(), false);
    while let Some(c) = chars.next() {
        let word = words.last_mut()?;
        match c {
            '\'' => is_quoted = !is_quoted,
            c if c.is_control() => return None,
            c if is_quoted => word.push(c),
            ' ' => words.push(String::new()),
            // A quoted word has its apostrophes outside of the quotes.
            '\\' if chars.next() == Some('\'') => word.push('\''),
            c if is_plain(c) => word.push(c),
            _ => return None,
        }
    }
    (!is_quoted).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_do_more_are_refused() {
        let line = |text: &str| RunLine { replay: text.to_owned(), seed: 1, ..RunLine::default() };
        let is = |text: &str| is_replay(&line(text));
        for good in [
            "",
            "vk-litmus run mp/MP+rel-acq.wg@v --device 'name:llvmpipe (LLVM)' --seed 1 --instances 400",
            r"vk-litmus run 'it'\''s.litmus' --device sim --seed 1",
        ] {
            assert!(is(good), "{good}");
        }
        for bad in [
            "vk-litmus run x; rm y",
            "vk-litmus run x $(y)",
            "vk-litmus run `x`",
            "vk-litmus run x > y",
            "vk-litmus run 'x",
            "vk-litmus run x\ny",
            "vk-litmus run x --gtest_output=xml:y",
            "vk-litmus run x --out y",
            "vk-litmus run x --seed 2",
            "vk-litmus run x --seed 1 --instances 400x",
            "vk-litmus merge x",
            "rm x",
        ] {
            assert!(!is(bad), "{bad}");
        }
    }
}
