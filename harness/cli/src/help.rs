//! The command line as a `clap` command, with examples in each `--help`, and the pages of the documentation.

use clap::{Command, CommandFactory};
use include_dir::{Dir, include_dir};
use litmus::similar::most_similar;

use crate::arguments::{CommandLine, Help};
use crate::exit::{Failure, Outcome};
use crate::output::print_text;

/// The commands of the main help.
const MOST_USED: &[&str] =
    &["race", "check", "run", "record", "explain", "report", "diff", "repro", "devices", "tests"];

/// The commands, grouped by purpose. All others are listed last.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Shaders", &["race", "record", "lint", "refine", "patterns", "compilers"]),
    ("Tests", &["run", "check", "explain", "tests", "convert", "compile", "codegen"]),
    ("Devices", &["devices", "faults", "tune", "bench"]),
    ("Models", &["models", "clauses", "compare", "generate"]),
    ("Reports", &["report", "plot", "repro", "diff", "merge"]),
    ("Interfaces", &["serve", "lsp"]),
];

/// Examples of each command.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("race", &["vk-litmus race shader.comp", "vk-litmus race reduce.wgsl --grid 4 --buffer 0.0=iota:1024"]),
    (
        "record",
        &[
            "vk-litmus record -- ./program --frames 10",
            "vk-litmus record --out recording --no-judge -- python3 app.py",
        ],
    ),
    ("lint", &["vk-litmus lint shader.comp", "vk-litmus lint"]),
    (
        "refine",
        &[
            "vk-litmus refine before.spv after.spv --open all",
            "vk-litmus refine shader.comp --open all --through 'spirv-opt -O {in} -o {out}'",
        ],
    ),
    ("patterns", &["vk-litmus patterns", "vk-litmus patterns spin-lock --form right"]),
    (
        "run",
        &[
            "vk-litmus run --device lavapipe",
            "vk-litmus run 'mp/*' --device gpu --time 30s --out results",
            "vk-litmus run shader.comp --grid 2 --device lavapipe",
            "vk-litmus run --resume results --time 2m",
        ],
    ),
    (
        "check",
        &["vk-litmus check mp/MP+rel-acq", "vk-litmus check lock.comp --grid 2 --assert 'data.count == 2'"],
    ),
    (
        "explain",
        &[
            "vk-litmus explain mp/MP+rel-acq",
            "vk-litmus explain mp/MP+plain --format svg",
            "vk-litmus explain reduce.comp --format html > race.html",
        ],
    ),
    ("tests", &["vk-litmus tests", "vk-litmus tests 'barrier/*'", "vk-litmus tests --device lavapipe"]),
    (
        "convert",
        &[
            "vk-litmus convert mp/MP+rel-acq --to glsl",
            "vk-litmus convert FOLDER --to khronos --out converted",
        ],
    ),
    (
        "compile",
        &["vk-litmus compile mp/MP+rel-acq --emit spvasm", "vk-litmus compile mp/MP+rel-acq --out test.spv"],
    ),
    ("codegen", &["vk-litmus codegen mp/MP+rel-acq --device radv:navi31 --emit asm --form merged"]),
    ("compilers", &["vk-litmus compilers"]),
    ("devices", &["vk-litmus devices", "vk-litmus devices --compile-only"]),
    ("faults", &["vk-litmus faults", "vk-litmus faults --format json"]),
    ("tune", &["vk-litmus tune --device gpu --time 2m --out tuned.toml"]),
    ("bench", &["vk-litmus bench --device lavapipe", "vk-litmus bench --stress pte,gpuharbor --device gpu"]),
    ("models", &["vk-litmus models", "vk-litmus models vulkan --text"]),
    ("clauses", &["vk-litmus clauses VK-SW-01"]),
    ("compare", &["vk-litmus compare sc tso", "vk-litmus compare sc tso --synthesize 4"]),
    (
        "generate",
        &["vk-litmus generate --clause VK-SW-01", "vk-litmus generate --model tso --events 3 --out tests"],
    ),
    ("report", &["vk-litmus report results", "vk-litmus report before after --format md"]),
    (
        "plot",
        &[
            "vk-litmus plot sb/SB+rlx-rlx before after",
            "vk-litmus plot 'sb/*' results --size column --theme dark",
        ],
    ),
    (
        "repro",
        &["vk-litmus repro --results results --out repro", "vk-litmus repro mp/MP+rel-acq --out repro-mp"],
    ),
    ("diff", &["vk-litmus diff before after", "vk-litmus diff results --model vulkan-1.2"]),
    ("merge", &["vk-litmus merge part1 part2 --out whole"]),
    ("lsp", &["vk-litmus lsp"]),
    ("serve", &["vk-litmus serve", "vk-litmus serve --port 8000 --timeout 10s"]),
    ("completions", &["vk-litmus completions bash > ~/.local/share/bash-completion/completions/vk-litmus"]),
    ("man", &["vk-litmus man run | man -l -"]),
    ("help", &["vk-litmus help race", "vk-litmus help port-tests"]),
];

/// The pages of the documentation for users.
static PAGES: [(&str, Dir<'_>); 4] = [
    ("tutorials", include_dir!("$CARGO_MANIFEST_DIR/../../docs/tutorials")),
    ("howto", include_dir!("$CARGO_MANIFEST_DIR/../../docs/howto")),
    ("explanation", include_dir!("$CARGO_MANIFEST_DIR/../../docs/explanation")),
    ("reference", include_dir!("$CARGO_MANIFEST_DIR/../../docs/reference")),
];

/// Pages in no folder.
const OTHER_PAGES: [(&str, &str); 3] = [
    ("ci", include_str!("../../../docs/ci.md")),
    ("editors", include_str!("../../../docs/editors.md")),
    ("glossary", include_str!("../../../GLOSSARY.md")),
];

/// The first line of generated pages.
const GENERATED: &str = "<!-- generated by `cargo xtask docs` -->\n";

/// Columns of the lists of commands and pages.
const WIDTH: usize = 80;

/// Returns the command line, with the most used commands and examples.
pub fn command() -> Command {
    let command = CommandLine::command();
    let commands = format_commands(&command, &[("Most used commands", MOST_USED)], false);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n       vk-litmus SHADER…       (race --lint)\n       vk-litmus TEST.litmus…  (check)\n\n{commands}`vk-litmus help --all` lists all commands and pages.\n\nOptions:\n{{options}}{{after-help}}"
    );
    command.help_template(template).mut_subcommands(|command| match format_examples(command.get_name()) {
        Some(examples) => command.after_long_help(examples),
        None => command,
    })
}

/// Prints the most used commands, all of them, the help of one, or a page.
///
/// # Errors
/// Returns an error if neither a command nor a page has the name, or the output fails.
pub fn print_help(arguments: &Help) -> Result<Outcome, Failure> {
    let mut program = command();
    program.build();
    let Some(topic) = &arguments.topic else {
        if arguments.all {
            return print_text(&(format_commands(&program, &GROUPS, true) + &format_pages()));
        }
        return print_text(&program.render_long_help().to_string());
    };
    let is_topic = |command: &&mut Command| !command.is_hide_set() && command.get_name() == topic;
    if let Some(command) = program.get_subcommands_mut().find(is_topic) {
        return print_text(&command.render_long_help().to_string());
    }
    let name = topic.trim_start_matches("docs/").trim_end_matches(".md");
    let pages = pages();
    if let Some((_, text)) =
        pages.iter().find(|(page, _)| page == name || page.rsplit('/').next() == Some(name))
    {
        return print_text(text.strip_prefix(GENERATED).unwrap_or(text).trim_start());
    }
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    let words = pages.iter().flat_map(|(page, _)| [page.as_str()].into_iter().chain(page.rsplit('/').next()));
    let similar = most_similar(name, commands.chain(words.clone()));
    let suggestion = similar
        .or_else(|| words.clone().find(|word| word.contains(name)))
        .map_or_else(String::new, |word| format!("; did you mean `{word}`?"));
    Err(Failure::input_message(format!(
        "neither a command nor a page has the name `{topic}`{suggestion} (`vk-litmus help --all` lists them)"
    )))
}

/// Returns the name of each page, such as `howto/port-tests`, and its text.
fn pages() -> Vec<(String, &'static str)> {
    let files = PAGES.iter().flat_map(|(folder, dir)| {
        let folders = std::iter::once(dir).chain(dir.dirs());
        folders.flat_map(Dir::files).filter_map(move |file| {
            Some((format!("{folder}/{}", file.path().with_extension("").display()), file.contents_utf8()?))
        })
    });
    files.chain(OTHER_PAGES.map(|(name, text)| (name.to_owned(), text))).collect()
}

/// Lists the pages by folder.
fn format_pages() -> String {
    let mut text = String::from("Pages (`vk-litmus help NAME`):\n");
    let mut names: Vec<String> = pages().into_iter().map(|(name, _)| name).collect();
    names.sort();
    for name in names {
        text += &format!("  {name}\n");
    }
    text
}

/// Lists the commands of groups, and with `rest` all others.
fn format_commands(command: &Command, groups: &[(&str, &[&str])], rest: bool) -> String {
    let visible: Vec<&Command> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let is_grouped = |name: &str| groups.iter().any(|(_, names)| names.contains(&name));
    let others = visible.iter().map(|command| command.get_name()).filter(|name| rest && !is_grouped(name));
    let others: Vec<&str> = others.collect();
    let mut text = String::new();
    for (title, names) in groups.iter().copied().chain([("Other", others.as_slice())]) {
        let lines =
            names.iter().filter_map(|name| visible.iter().find(|command| command.get_name() == *name));
        let lines: String = lines.map(|command| format_command(command)).collect();
        if !lines.is_empty() {
            text += &format!("{title}:\n{lines}");
        }
    }
    text
}

/// Returns the name of a command and its purpose, which may take several lines.
fn format_command(command: &Command) -> String {
    // Without colours, which `to_string` would look for in every start of the program.
    let about = command.get_about().map(|about| about.ansi().to_string()).unwrap_or_default();
    let name = format!("  {:11}  ", command.get_name());
    let options = textwrap::Options::new(WIDTH).initial_indent(&name).subsequent_indent("               ");
    textwrap::fill(&about, options) + "\n"
}

/// Returns the examples of a command as the end of its help.
fn format_examples(name: &str) -> Option<String> {
    let (_, lines) = EXAMPLES.iter().find(|(known, _)| *known == name)?;
    Some(format!(
        "Examples:\n{}",
        lines.iter().map(|line| format!("  {line}\n")).collect::<String>().trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn visible_commands() -> Vec<Command> {
        let mut command = command();
        command.build();
        let is_visible = |command: &&Command| !command.is_hide_set();
        command.get_subcommands().filter(is_visible).cloned().collect()
    }

    #[test]
    fn groups_name_commands() {
        let visible = visible_commands();
        for (title, names) in GROUPS.into_iter().chain([("most used", MOST_USED)]) {
            for name in names {
                assert!(visible.iter().any(|command| command.get_name() == *name), "{title}: {name}");
            }
        }
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        for command in visible_commands() {
            let name = command.get_name();
            let (_, examples) = EXAMPLES.iter().find(|(known, _)| *known == name).unwrap();
            for example in *examples {
                let line = example.split(['|', '>']).next().unwrap();
                let words = line.split_whitespace().map(|word| word.trim_matches('\''));
                // `split_whitespace` also splits quoted arguments.
                let words: Vec<&str> =
                    words.take_while(|word| !["--assert", "--through"].contains(word)).collect();
                let parsed = super::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn lists_fit_80_columns() {
        let all = format_commands(&command(), &GROUPS, true) + &format_pages();
        let main = command().term_width(WIDTH).render_help().to_string();
        for line in all.lines().chain(main.lines()) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert!(main.lines().count() <= 28, "{main}");
    }

    #[test]
    fn short_help_fits_a_screen() {
        for mut command in visible_commands() {
            let name = command.get_name().to_owned();
            let help = command.render_help().to_string();
            assert!(help.lines().count() <= 25, "{name} -h has {} lines:\n{help}", help.lines().count());
        }
    }

    /// The help texts of a flag differ between commands at most in the default.
    #[test]
    fn a_flag_has_the_same_text_everywhere() {
        // The meaning of these flags depends on the command.
        let exceptions = [
            "format", "out", "time", "timeout", "seed", "suite", "device", "emit", "form", "progress",
            "jobs", "stress", "threads", "shard", "fix", "from",
        ];
        let mut texts: BTreeMap<String, (String, String)> = BTreeMap::new();
        for command in visible_commands() {
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let Some(flag) = argument.get_long().filter(|flag| !exceptions.contains(flag)) else {
                    continue;
                };
                let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let text = text.split(" [default").next().unwrap().split(';').next().unwrap();
                let text = text.trim_end_matches('.').to_owned();
                let name = command.get_name().to_owned();
                let (first, known) = texts.entry(flag.to_owned()).or_insert((name.clone(), text.clone()));
                assert_eq!(*known, text, "--{flag} of {first} and of {name}");
            }
        }
    }
}
