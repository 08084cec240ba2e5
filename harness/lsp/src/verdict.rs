//! The answer of `check` as one line for an editor.

use serde::Deserialize;

use crate::child::ChildOutput;

/// The fields of an answer that the line shows.
#[derive(Debug, Deserialize)]
struct EditorCheckAnswer {
    model: String,
    race: String,
    queries: Vec<CheckQuery>,
}

#[derive(Debug, Deserialize)]
struct CheckQuery {
    text: String,
    holds: Option<bool>,
    expected: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct RejectedTest {
    error: String,
    line: u32,
}

/// Returns the verdict in words from the output of `check --format json`.
pub fn describe_verdict(output: &ChildOutput) -> String {
    let first = output.stdout.lines().next().unwrap_or_default();
    if let Ok(answer) = serde_json::from_str::<EditorCheckAnswer>(first) {
        let mut parts: Vec<String> = answer.queries.iter().map(describe_query).collect();
        parts.push(match answer.race.as_str() {
            "free" => "no data race".to_owned(),
            "racy" => "data race: undefined".to_owned(),
            "unknown" => "races unknown".to_owned(),
            other => format!("races {other}"),
        });
        return format!("{}: {}", answer.model, parts.join("; "));
    }
    if let Ok(rejected) = serde_json::from_str::<RejectedTest>(first) {
        return format!("line {}: {}", rejected.line, rejected.error);
    }
    let message = output.stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("no answer");
    message.trim_start_matches([' ', '×']).to_owned()
}

fn describe_query(query: &CheckQuery) -> String {
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
        let line = |race: &str, holds: &str, expected: &str, text: &str| {
            format!(
                r#"{{"model":"vulkan","race":"{race}","queries":[{{"text":"{text}","holds":{holds},"expected":{expected}}}]}}"#
            )
        };
        let cases = [
            (
                line("free", "false", "false", "exists (x == 1)"),
                "vulkan: forbidden, as expected; no data race",
            ),
            (line("racy", "true", "null", "exists (x == 1)"), "vulkan: allowed; data race: undefined"),
            (line("unknown", "null", "true", "forall (x == 1)"), "vulkan: unanswered; races unknown"),
            (
                line("not-defined", "false", "true", "forall (x == 1)"),
                "vulkan: does not hold, not as expected; races not-defined",
            ),
            (r#"{"file":"-","error":"no","line":3,"column":1}"#.to_owned(), "line 3: no"),
        ];
        for (stdout, expected) in cases {
            assert_eq!(describe_verdict(&ChildOutput { stdout, ..ChildOutput::default() }), expected);
        }
        let stderr = "\n  × no such model\n".to_owned();
        assert_eq!(describe_verdict(&ChildOutput { stderr, ..ChildOutput::default() }), "no such model");
        assert_eq!(describe_verdict(&ChildOutput::default()), "no answer");
    }
}
