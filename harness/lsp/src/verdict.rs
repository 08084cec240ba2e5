//! The answer of `check` as one line for an editor.

use results::wire::{CheckLine, Query, RaceWord, RejectedLine};

use crate::child::ChildOutput;

/// Returns the verdict in words from the output of `check --format json`.
pub fn describe_verdict(output: &ChildOutput) -> String {
    let first = output.stdout.lines().next().unwrap_or_default();
    if let Ok(answer) = serde_json::from_str::<CheckLine>(first) {
        let mut parts: Vec<String> = answer.queries.iter().map(describe_query).collect();
        let race = match answer.race {
            RaceWord::Free => "no data race",
            RaceWord::Racy => "data race: undefined",
            RaceWord::Unknown | RaceWord::NeedsInputs => "races unknown",
            RaceWord::NotDefined => "races not-defined",
        };
        parts.push(race.to_owned());
        return format!("{}: {}", answer.model, parts.join("; "));
    }
    if let Ok(rejected) = serde_json::from_str::<RejectedLine>(first) {
        return format!("line {}: {}", rejected.line, rejected.error);
    }
    // The command line itself was refused.
    let message = output.stderr.trim();
    if message.is_empty() { "no answer".to_owned() } else { message.to_owned() }
}

fn describe_query(query: &Query) -> String {
    let word = match (query.text.starts_with("exists"), query.holds) {
        (_, None) => "unanswered",
        (true, Some(true)) => "allowed",
        (true, Some(false)) => "forbidden",
        (false, Some(true)) => "holds",
        (false, Some(false)) => "does not hold",
    };
    match (query.holds, query.expected) {
        (Some(holds), Some(expected)) if holds != expected => format!("{word}, not as expected"),
        (Some(_), Some(_)) => format!("{word}, as expected"),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_formatted() {
        let line = |race: RaceWord, holds: Option<bool>, expected: Option<bool>, text: &str| {
            let queries = vec![Query { text: text.to_owned(), holds, expected }];
            let line = CheckLine { model: "vulkan".to_owned(), race, queries, ..CheckLine::default() };
            serde_json::to_string(&line).unwrap()
        };
        let (exists, forall) = ("exists (x == 1)", "forall (x == 1)");
        let cases = [
            (
                line(RaceWord::Free, Some(false), Some(false), exists),
                "vulkan: forbidden, as expected; no data race",
            ),
            (line(RaceWord::Racy, Some(true), None, exists), "vulkan: allowed; data race: undefined"),
            (line(RaceWord::Unknown, None, Some(true), forall), "vulkan: unanswered; races unknown"),
            (
                line(RaceWord::NotDefined, Some(false), Some(true), forall),
                "vulkan: does not hold, not as expected; races not-defined",
            ),
            (r#"{"file":"-","error":"no","line":3,"column":1}"#.to_owned(), "line 3: no"),
        ];
        for (stdout, expected) in cases {
            assert_eq!(describe_verdict(&ChildOutput { stdout, ..ChildOutput::default() }), expected);
        }
        let stderr = "\n  no such model\n".to_owned();
        assert_eq!(describe_verdict(&ChildOutput { stderr, ..ChildOutput::default() }), "no such model");
        assert_eq!(describe_verdict(&ChildOutput::default()), "no answer");
    }
}
