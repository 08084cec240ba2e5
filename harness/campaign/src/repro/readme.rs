//! The README of a bundle, ready to paste into an issue tracker.

use std::fmt::Write;

use litmus::{Prediction, Race};
use results::escape;
use results::state;
use results::wire::VerdictWord;
use results::write::number;

use super::{Bundle, RecordedVerdict, ReproSubject};

/// The content of the README.
pub struct ReadmeContent<'a> {
    /// The test.
    pub subject: &'a ReproSubject,
    /// The name of the model.
    pub model: &'a str,
    /// The prediction, if it is complete.
    pub prediction: Option<&'a Prediction>,
    /// The recorded verdict.
    pub seen: Option<&'a RecordedVerdict>,
    /// The device that kernels are generated for, with its driver.
    pub device: Option<String>,
    /// The error of a compiler that failed.
    pub ended: Option<&'a str>,
    /// The explanation; may be empty.
    pub explained: &'a str,
    /// The files.
    pub bundle: &'a Bundle,
}

/// Returns the README. Control characters of untrusted text, such as device names, are removed.
pub fn write(said: &ReadmeContent<'_>) -> String {
    let mut text =
        format!("# {}: {}\n\n", escape::escape_line(said.subject.name()), escape::escape_line(&title(said)));
    let why = said.subject.loaded.test.metadata.why.join(" ");
    if !why.is_empty() {
        let _ = writeln!(text, "{why}\n");
    }
    let _ = writeln!(text, "```litmus\n{}\n```\n", said.subject.text.trim_end());
    if let Some(seen) = said.seen {
        text += &what_was_seen(seen);
    }
    if !said.explained.is_empty() {
        let _ = writeln!(
            text,
            "## Why\n\nThe model is `{}`, the memory model of the Vulkan specification as cat; its clauses are named in brackets. \
             The same as a picture: `explanation.svg`.\n\n```text\n{}\n```\n",
            said.model,
            said.explained.trim_end()
        );
    }
    if let Some(ended) = said.ended {
        let _ = writeln!(text, "## The compiler\n\n```text\n{}\n```\n", ended.trim());
    }
    text += &how_to_see_it(said);
    text += "## Files\n\n| file | |\n|---|---|\n";
    for file in &said.bundle.written {
        let _ = writeln!(text, "| `{}` | {} |", file.name, file.what);
    }
    text.push('\n');
    for lack in &said.bundle.lacking {
        let _ = writeln!(text, "{lack}\n");
    }
    let _ = writeln!(text, "Written by vk-litmus {}.", env!("CARGO_PKG_VERSION"));
    escape::escape_block(&text).into_owned()
}

fn title(said: &ReadmeContent<'_>) -> String {
    if let Some(RecordedVerdict { line, .. }) = said.seen
        && line.verdict == VerdictWord::Violates
    {
        return format!("{} shows what `{}` forbids", line.device, line.model);
    }
    match said.prediction {
        None => format!("`{}` gives no complete answer", said.model),
        Some(prediction) if prediction.is_undefined() => {
            format!("the program races under `{}`, so its behaviour is undefined", said.model)
        }
        Some(prediction) if prediction.race == Race::Unknown => {
            format!("it is unknown whether the program races under `{}`", said.model)
        }
        Some(prediction) => {
            let forbidden = prediction.outcomes.values().filter(|outcome| !outcome.allowed).count();
            let all = prediction.outcomes.len();
            format!("`{}` forbids {forbidden} of {all} outcomes", said.model)
        }
    }
}

fn what_was_seen(RecordedVerdict { line, device }: &RecordedVerdict) -> String {
    let mut text = "## What was seen\n\n".to_owned();
    let instances = number::format_count(line.instances);
    let _ = writeln!(text, "{instances} instances on `{}`: {}.\n", line.device, line.verdict.text());
    text += "| count | outcome | the model |\n|---:|---|---|\n";
    for outcome in line.outcomes.iter().filter(|outcome| outcome.count > 0) {
        let says = match (line.verdict, outcome.allowed, outcome.weak) {
            (VerdictWord::Undefined, ..) => "",
            (_, false, _) => "**forbidden**",
            (_, true, true) => "allowed, weak",
            (_, true, false) => "allowed",
        };
        let _ = writeln!(
            text,
            "| {} | `{}` | {says} |",
            number::format_count(outcome.count),
            state::format_state(&outcome.state)
        );
    }
    for odd in &line.unexpected {
        let _ = writeln!(
            text,
            "| {} | raw values {:x?} | **no execution has them** |",
            number::format_count(odd.count),
            odd.raw
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
    let _ = writeln!(text, "Seen by vk-litmus {tool}, and again by\n\n```sh\n{}\n```\n", line.replay);
    text
}

fn how_to_see_it(said: &ReadmeContent<'_>) -> String {
    let mut text = "## How to see it\n\n".to_owned();
    if said.bundle.written.iter().any(|file| file.name == "host.c") {
        text += "In this folder, with a C compiler and Vulkan's headers and loader (Debian: `libvulkan-dev`), and nothing else:\n\n\
                 ```sh\ncc -O2 -o host host.c -lvulkan\n./host 10\n```\n\n\
                 runs the kernels for ten seconds and counts outcomes, each with what the model says of it; the exit code is 1 where a \
                 forbidden one was seen. The kernels are read when it starts: another `kernel.spv`, such as one that `spirv-as` makes of \
                 a changed `kernel.spvasm`, is run as it is.\n\n";
    }
    let made_for = match &said.device {
        Some(device) => format!("The kernels are made for {device}.\n\n"),
        None => "The kernels are made for any device.\n\n".to_owned(),
    };
    text + &made_for
        + "With vk-litmus:\n\n```sh\nvk-litmus run test.litmus\nvk-litmus explain test.litmus\n```\n\n"
}
