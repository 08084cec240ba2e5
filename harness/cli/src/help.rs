//! The command line as a `clap` command: groups of commands in the main help, and examples in each `--help`.

use clap::{Command, CommandFactory};

use crate::arguments::CommandLine;

/// The commands, grouped by purpose. All others are listed last.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Shaders", &["race", "record", "lint", "refine", "patterns"]),
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
];

/// Returns the command line, with groups and examples.
pub fn command() -> Command {
    let command = CommandLine::command();
    let groups = format_groups(&command);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n       vk-litmus SHADER…       (race --lint)\n       vk-litmus TEST.litmus…  (check)\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
    );
    command.help_template(template).mut_subcommands(|command| match format_examples(command.get_name()) {
        Some(examples) => command.after_long_help(examples),
        None => command,
    })
}

/// Lists the commands by group.
fn format_groups(command: &Command) -> String {
    let visible: Vec<&Command> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let width = visible.iter().map(|command| command.get_name().len()).max().unwrap_or(0);
    let line = |command: &Command| {
        // Without colours, which `to_string` would look for in every start of the program.
        let about = command.get_about().map(|about| about.ansi().to_string()).unwrap_or_default();
        format!("  {:width$}  {about}\n", command.get_name())
    };
    let mut text = String::new();
    for (title, names) in GROUPS {
        text += &format!("{title}:\n");
        let named =
            names.iter().filter_map(|name| visible.iter().find(|command| command.get_name() == *name));
        text += &named.map(|command| line(command)).collect::<String>();
    }
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    text += "Other:\n";
    text += &visible
        .iter()
        .filter(|command| !is_grouped(command.get_name()))
        .map(|command| line(command))
        .collect::<String>();
    text
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
        let is_visible = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
        command.get_subcommands().filter(is_visible).cloned().collect()
    }

    #[test]
    fn groups_name_commands() {
        let visible = visible_commands();
        for (title, names) in GROUPS {
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
            "jobs", "stress", "threads", "shard", "fix",
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
