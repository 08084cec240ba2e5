//! `patterns`: the list of patterns, or one pattern as a page in Markdown.

use campaign::similar::did_you_mean;
use results::wire::{PATTERNS_SCHEMA, PatternForm, PatternRecord, PatternsRecord};

use crate::arguments::{ListFormat, Patterns};
use crate::exit::{Failure, Outcome};
use crate::output::{print_json, print_text};
use crate::patterns::load_patterns;

/// Runs the command.
///
/// # Errors
/// Returns an error if the pattern or form does not exist.
pub fn patterns(arguments: &Patterns) -> Result<Outcome, Failure> {
    let mut patterns = load_patterns().map_err(Failure::environment_error)?;
    if let Some(name) = &arguments.name {
        if !patterns.iter().any(|pattern| pattern.name == *name) {
            return Err(unknown_name_failure(
                "pattern",
                name,
                patterns.iter().map(|pattern| pattern.name.as_str()),
            ));
        }
        patterns.retain(|pattern| pattern.name == *name);
    }
    if let (Some(name), Some(pattern)) = (&arguments.form, patterns.first()) {
        let Some(form) = pattern.forms.iter().find(|form| form.name == *name) else {
            return Err(unknown_name_failure(
                "form",
                name,
                pattern.forms.iter().map(|form| form.name.as_str()),
            ));
        };
        return print_text(&form.glsl);
    }
    if arguments.format == ListFormat::Json {
        return print_json(&PatternsRecord { schema: PATTERNS_SCHEMA.to_owned(), patterns });
    }
    let text = match (&arguments.name, patterns.first()) {
        (Some(_), Some(pattern)) => format_page(pattern),
        _ => {
            let width = patterns.iter().map(|pattern| pattern.name.len()).max().unwrap_or(0);
            patterns.iter().map(|one| format!("{:width$}  {}\n", one.name, one.title)).collect()
        }
    };
    print_text(&text)
}

fn unknown_name_failure<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let known: Vec<&str> = known.collect();
    let suggestion = did_you_mean(name, known.iter().copied());
    Failure::input_message(format!(
        "unknown {what} `{name}`{suggestion}; expected one of: {}",
        known.join(", ")
    ))
}

fn format_page(pattern: &PatternRecord) -> String {
    let PatternRecord { name, title, about, assertion, ends, clauses, .. } = pattern;
    let count = pattern.grid[0];
    let unroll = pattern.unroll.map(|bound| format!(" --unroll {bound}")).unwrap_or_default();
    let mut text = format!("# {title}\n\n{}\n", about.trim());
    let (right, wrong): (Vec<&PatternForm>, Vec<&PatternForm>) =
        pattern.forms.iter().partition(|form| form.verdict == "right");
    for (index, form) in right.iter().enumerate() {
        let file = if index == 0 { name.clone() } else { format!("{name}-{}", form.name) };
        text += &if index == 0 {
            "\n## The right form\n".to_owned()
        } else {
            format!("\n## Also right: {}\n\n{}\n", replace_hyphens(&form.name), form.why.trim())
        };
        text += &format!("\n```glsl file={file}.comp\n{}```\n", form.glsl);
        text += &format!(
            "\n```sh with=glslangValidator\nvk-litmus check {file}.comp --grid {count} --assert '{assertion}'{unroll}\n```\n"
        );
        text += &format!("\n```text output\n{file}:main: race-free under vulkan\n…holds, as expected\n```\n");
    }
    text += &format!("\nIt rests on {}. **Does it end?** {}\n", clauses.join(", "), ends.trim());
    for form in wrong {
        let verdict = match form.verdict.as_str() {
            "racy" => "A data race",
            "divergent" => "Undefined",
            _ => "No race, but the assertion fails",
        };
        text += &format!("\n## Wrong: {}\n\n{verdict}. {}\n\n", replace_hyphens(&form.name), form.why.trim());
        // A form in a separate file is printed in full.
        if form.mend.iter().any(|change| change.from.is_empty()) {
            text += &format!("```glsl\n{}```\n\nThe fix:\n\n", form.glsl);
        }
        text += "```diff\n";
        for change in &form.mend {
            let same = change.to.lines().next().filter(|line| *line == change.from);
            let (from, to) = (change.from.lines(), change.to.lines().skip(same.iter().count()));
            same.iter().for_each(|line| text += &format!(" {line}\n"));
            from.skip(same.iter().count()).for_each(|line| text += &format!("-{line}\n"));
            to.for_each(|line| text += &format!("+{line}\n"));
        }
        text += "```\n";
    }
    text += "\n## As a litmus test\n\n";
    if let Some(right) = pattern.forms.first() {
        text += &format!("```litmus\n{}```\n", right.litmus);
    }
    text + "\nThis page is made from the data that `vk-litmus patterns` has; tests compile every form and compare its verdict.\n"
}

/// Replaces hyphens by spaces.
fn replace_hyphens(name: &str) -> String {
    name.replace('-', " ")
}
