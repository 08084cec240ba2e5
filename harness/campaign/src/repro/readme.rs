//! The README of a bundle, ready to paste into an issue tracker.

use std::fmt::Write;

use litmus::{Prediction, Race};
use results::wire::VerdictWord;
use results::write::number;
use results::{escape, state};

use super::{Bundle, RecordedVerdict, ReproSubject};

pub struct ReadmeContent<'a> {
    /// The test.
    pub subject: &'a ReproSubject,
    /// The name of the model.
    pub model: &'a str,
    /// The prediction, if it is complete.
    pub prediction: Option<&'a Prediction>,
    pub recorded: Option<&'a RecordedVerdict>,
    /// The device that kernels are generated for, with its driver.
    pub device: Option<String>,
    /// The subgroup size that kernels require, if one does.
    pub subgroup_size: Option<u32>,
    /// The error of a compiler that failed.
    pub compiler_error: Option<&'a str>,
    /// The explanation; may be empty.
    pub explanation: &'a str,
    pub bundle: &'a Bundle,
}

/// Returns the README. Control characters of untrusted text, such as device names, are removed.
pub fn render_readme(content: &ReadmeContent<'_>) -> String {
    let mut text = format!(
        "# {}: {}\n\n",
        escape::escape_line(content.subject.name()),
        escape::escape_line(&headline(content))
    );
    let why = content.subject.loaded.test.metadata.why.join(" ");
    if !why.is_empty() {
        let _ = writeln!(text, "{why}\n");
    }
    let _ = writeln!(text, "```litmus\n{}\n```\n", content.subject.text.trim_end());
    if let Some(recorded) = content.recorded {
        text += &format_observations(recorded);
    }
    if !content.explanation.is_empty() {
        let _ = writeln!(
            text,
            "## Why\n\nThe model is `{}`, the memory model of the Vulkan specification as cat; brackets name its clauses. \
             The same as a picture: `explanation.svg`.\n\n```text\n{}\n```\n",
            content.model,
            content.explanation.trim_end()
        );
    }
    if let Some(ended) = content.compiler_error {
        let _ = writeln!(text, "## The compiler\n\n```text\n{}\n```\n", ended.trim());
    }
    text += &format_instructions(content);
    text += "## Files\n\n| file | |\n|---|---|\n";
    for file in &content.bundle.files {
        let _ = writeln!(text, "| `{}` | {} |", file.name, file.description);
    }
    text.push('\n');
    for note in &content.bundle.missing {
        let _ = writeln!(text, "{note}\n");
    }
    let _ = writeln!(text, "Written by vk-litmus {}.", env!("CARGO_PKG_VERSION"));
    escape::escape_block(&text).into_owned()
}

fn headline(content: &ReadmeContent<'_>) -> String {
    if let Some(RecordedVerdict { line, .. }) = content.recorded
        && line.verdict == VerdictWord::Violates
    {
        return format!("{} shows what `{}` forbids", line.device, line.model);
    }
    match content.prediction {
        None => format!("`{}` gives no complete answer", content.model),
        Some(prediction) if prediction.is_undefined() => {
            format!("the program races under `{}`, so its behaviour is undefined", content.model)
        }
        Some(prediction) if prediction.race == Race::Unknown => {
            format!("it is unknown whether the program races under `{}`", content.model)
        }
        Some(prediction) => {
            let forbidden = prediction.outcomes.values().filter(|outcome| !outcome.allowed).count();
            let all = prediction.outcomes.len();
            format!("`{}` forbids {forbidden} of {all} outcomes", content.model)
        }
    }
}

fn format_observations(RecordedVerdict { line, device, transformations }: &RecordedVerdict) -> String {
    let mut text = "## Observed outcomes\n\n".to_owned();
    let instances = number::format_count(line.instances);
    let _ = writeln!(text, "{instances} instances on `{}`: {}.\n", line.device, line.verdict.name());
    text += "| count | outcome | the model |\n|---:|---|---|\n";
    for outcome in line.outcomes.iter().filter(|outcome| outcome.count > 0) {
        let word = match (line.verdict, outcome.allowed, outcome.weak) {
            (VerdictWord::Undefined, ..) => "",
            (_, false, _) => "**forbidden**",
            (_, true, true) => "allowed, weak",
            (_, true, false) => "allowed",
        };
        let _ = writeln!(
            text,
            "| {} | `{}` | {word} |",
            number::format_count(outcome.count),
            state::format_state(&outcome.state)
        );
    }
    for unexpected in &line.unexpected {
        let _ = writeln!(
            text,
            "| {} | raw values {:x?} | **no execution produces them** |",
            number::format_count(unexpected.count),
            unexpected.raw
        );
    }
    text.push('\n');
    if let Some(device) = device {
        let _ = writeln!(
            text,
            "| | |\n|---|---|\n| device | {} ({}) |\n| driver | {} {} |\n| Vulkan | {} |\n| vendor, device | {:#06x}, {:#06x} |\n",
            device.device_name,
            device.kind,
            device.driver_name,
            device.driver_info,
            device.api_version,
            device.vendor_id,
            device.device_id
        );
    }
    let tool = if line.tool.is_empty() { "an earlier version" } else { &line.tool };
    let _ = writeln!(text, "Observed by vk-litmus {tool}. To run it again:\n\n```sh\n{}\n```\n", line.replay);
    if let Some(needed) = transformations {
        let _ = writeln!(
            text,
            "The violation needs these transformations, and the kernels of this folder have no others: {}.\n\n```sh\n{}\n```\n",
            needed.names.join(", "),
            needed.replay
        );
    }
    text
}

fn format_instructions(content: &ReadmeContent<'_>) -> String {
    let mut text = "## How to reproduce it\n\n".to_owned();
    if content.bundle.files.iter().any(|file| file.name == "host.c") {
        text += "In this folder, with a C compiler and Vulkan's headers and loader (Debian: `libvulkan-dev`), and nothing else:\n\n\
                 ```sh\ncc -O2 -o host host.c -lvulkan\n./host 10\n```\n\n\
                 runs the kernels for ten seconds and counts outcomes, each with the model's answer; the exit code is 1 if a \
                 forbidden one was observed. The kernels are read at the start: a changed `kernel.spv`, for example by `spirv-as` from \
                 a changed `kernel.spvasm`, needs no other step.\n\n";
    }
    let kernel_target = match (&content.device, content.subgroup_size) {
        (Some(device), _) => format!("The kernels are generated for {device}.\n\n"),
        (None, Some(size)) => format!(
            "The kernels need a device with subgroups of {size} invocations. For another device, generate them by \
             `vk-litmus repro` with `--device NAME`.\n\n"
        ),
        (None, None) => "The kernels are generated for any device.\n\n".to_owned(),
    };
    text + &kernel_target
        + "With vk-litmus:\n\n```sh\nvk-litmus run test.litmus\nvk-litmus explain test.litmus\n```\n\n"
}
