//! Answers about a recording in the requested format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use campaign::shader::race::to_page;
use explanation::{CommandClass, HazardMark, HazardSection, ProcessPicture, RecordingPage, TimelineCommand};
use results::wire::{
    HazardLine, JudgementLine, RaceLine, RaceVerdict, RecordedCommand, RecordedProcess, RecordingRecord,
};
use results::write::json::JsonLinesWriter;
use results::write::junit::{AnswerStatus, JunitAnswerWriter};
use results::write::race::format_race;
use results::write::recording::{describe_unjudged, format_hazard, format_judgement, hazard_title};
use results::write::sarif::SarifCheckWriter;

use super::super::answer_status::{answer_status, verdict_outcome};
use super::RECORDING_FILE;
use crate::arguments::{FailOn, FailureKind, RaceFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, command_line, output_failure, print_message, write_file};

/// The page in a recording.
const PAGE_FILE: &str = "report.html";

/// Options of the judgement of a recording.
#[derive(Clone, Debug)]
pub struct JudgeOptions {
    /// Output format.
    pub format: RaceFormat,
    /// The answers that fail.
    pub fail_on: FailOn,
    /// True to write a page of the answers into the recording.
    pub has_page: bool,
    /// Time limit for each case.
    pub time_limit: Duration,
    /// The end of all answers about shaders.
    pub ends: Option<Instant>,
    /// Number of kinds judged in parallel [default: processors].
    pub jobs: Option<usize>,
}

/// Writes answers about shaders as they arrive, then the hazards and the counts.
pub struct AnswerWriter<'a> {
    folder: &'a Path,
    recording: &'a RecordingRecord,
    options: &'a JudgeOptions,
    is_quiet: bool,
    out: StandardOutput,
    outcome: Outcome,
    /// The answers with their kinds.
    shaders: Vec<(u64, RaceLine)>,
    junit: JunitAnswerWriter,
}

impl<'a> AnswerWriter<'a> {
    pub fn new(
        folder: &'a Path,
        recording: &'a RecordingRecord,
        options: &'a JudgeOptions,
        is_quiet: bool,
    ) -> AnswerWriter<'a> {
        let (out, outcome) = (StandardOutput::new(), Outcome::Success);
        let (shaders, junit) = (Vec::new(), JunitAnswerWriter::default());
        AnswerWriter { folder, recording, options, is_quiet, out, outcome, shaders, junit }
    }

    /// Counts an answer, and returns its status.
    fn count(&mut self, kind: FailureKind, outcome: Outcome) -> AnswerStatus {
        let effect = self.options.fail_on.outcome(kind, outcome);
        self.outcome.escalate_to(effect);
        answer_status(outcome, effect)
    }

    /// Adds the answer about an entry point.
    pub fn add_shader(&mut self, kind: u64, line: RaceLine) -> Result<(), Failure> {
        let (answer_kind, outcome) = verdict_outcome(line.verdict);
        let status = self.count(answer_kind, outcome);
        match self.options.format {
            RaceFormat::Json => JsonLinesWriter::new(&mut self.out).write(&line).map_err(output_failure)?,
            RaceFormat::Text if line.verdict == RaceVerdict::Clean && line.findings.is_empty() => {}
            RaceFormat::Text => self.out.print(&format_race(&line))?,
            RaceFormat::Junit => self.junit.add_shader(&line, status),
            RaceFormat::Sarif | RaceFormat::Html => {}
        }
        self.shaders.push((kind, line));
        Ok(())
    }

    /// Writes the rest, and returns the exit code.
    pub fn finish(mut self, hazards: &[HazardLine], judgement: &JudgementLine) -> Result<Outcome, Failure> {
        for line in hazards {
            let (kind, outcome) = match line.is_possible {
                true => (FailureKind::PossibleHazard, Outcome::Environment),
                false => (FailureKind::Hazard, Outcome::RuleBroken),
            };
            let status = self.count(kind, outcome);
            self.junit.add_answer("order", &hazard_title(line), status, &format_hazard(line));
        }
        for line in &judgement.unjudged {
            let status = self.count(FailureKind::Unjudged, Outcome::Environment);
            self.junit.add_answer("not judged", &line.what, status, &describe_unjudged(line));
        }
        let end = if self.recording.has_failed { Outcome::RuleBroken } else { Outcome::Success };
        let status = self.count(FailureKind::Program, end);
        self.junit.add_answer("program", &self.recording.program.join(" "), status, &self.recording.end);
        if hazards.is_empty() {
            let count = format!("{} commands", judgement.judged_commands);
            self.junit.add_answer("order", &count, AnswerStatus::Success, "");
        }
        let lines: Vec<RaceLine> = self.shaders.iter().map(|(_, line)| line.clone()).collect();
        let summary = format_judgement(self.recording, &lines, judgement);
        let page = |writer: &Self| {
            explanation::recording(&writer.page(hazards, judgement, &summary), &command_line())
        };
        match self.options.format {
            RaceFormat::Json => {
                let mut json = JsonLinesWriter::new(&mut self.out);
                hazards.iter().try_for_each(|line| json.write(line)).map_err(output_failure)?;
                json.write(judgement).map_err(output_failure)?;
            }
            RaceFormat::Text => {
                let hazards: String = hazards.iter().map(format_hazard).collect();
                self.out.print(&(hazards + &summary))?;
            }
            RaceFormat::Sarif => {
                let mut log = SarifCheckWriter::new(Vec::new());
                for line in &lines {
                    let file = self.folder.join(&line.file).display().to_string();
                    log.add_findings(&file, &line.findings);
                    log.add_needs(&file, &line.needs);
                }
                let file = self.folder.join(RECORDING_FILE).display().to_string();
                log.add_judgement(&file, hazards, judgement);
                let written = log.finish_into_inner().map_err(output_failure)?;
                self.out.print(&String::from_utf8_lossy(&written))?;
            }
            RaceFormat::Junit => {
                let text = std::mem::take(&mut self.junit).finish().map_err(output_failure)?;
                self.out.print(&text)?;
            }
            RaceFormat::Html => self.out.print(&page(&self))?,
        }
        if !self.is_quiet && self.options.format != RaceFormat::Text {
            print_message(&summary);
        }
        if self.options.has_page {
            write_file(&self.folder.join(PAGE_FILE), page(&self).as_bytes())?;
        }
        Ok(self.outcome)
    }

    /// Collects the data of the page.
    fn page(&self, hazards: &[HazardLine], judgement: &JudgementLine, summary: &str) -> RecordingPage {
        let mut verdicts: BTreeMap<u64, Vec<RaceVerdict>> = BTreeMap::new();
        self.shaders.iter().for_each(|(kind, line)| verdicts.entry(*kind).or_default().push(line.verdict));
        let has_race = |kind: u64| verdicts.get(&kind).is_some_and(|all| all.contains(&RaceVerdict::Racy));
        let redundant = judgement.redundant_barriers.iter();
        let redundant: BTreeSet<(u32, u64)> = redundant.map(|one| (one.process, one.index)).collect();
        let picture = |process: &RecordedProcess| {
            let queues = process.queues.iter();
            let queues = queues.map(|queue| format!("queue {}, family {}", queue.index, queue.family));
            let class = |command: &RecordedCommand| match command.kind {
                Some(kind) if has_race(kind) => CommandClass::RacyDispatch,
                Some(_) => CommandClass::Dispatch,
                None if redundant.contains(&(process.process, command.index)) => {
                    CommandClass::RedundantBarrier
                }
                None if command.is_barrier => CommandClass::Barrier,
                None => CommandClass::Other,
            };
            let commands = process.commands.iter().map(|command| TimelineCommand {
                queue: process.queues.iter().position(|queue| queue.queue == command.queue).unwrap_or(0),
                submission: command.submission,
                text: match &command.label {
                    Some(label) => format!("{label}: {}", command.what),
                    None => command.what.clone(),
                },
                class: class(command),
            });
            let own = hazards.iter().enumerate().filter(|(_, line)| line.process == process.process);
            let mark = |(section, line): (usize, &HazardLine)| {
                let mut indices = line.commands.iter().map(|command| command.index as usize);
                let first = indices.next()?;
                Some(HazardMark { section, first, second: indices.next(), is_possible: line.is_possible })
            };
            ProcessPicture {
                title: format!("Process {} on {}", process.process, process.devices.join(", ")),
                queues: queues.collect(),
                commands: commands.collect(),
                hazards: own.filter_map(mark).collect(),
            }
        };
        let mut kinds =
            vec![["kind", "shader", "dispatches", "label", "verdict"].map(str::to_owned).to_vec()];
        for kind in &self.recording.kinds {
            let all = verdicts.get(&kind.kind).into_iter().flatten().map(RaceVerdict::to_string);
            let mut all: Vec<String> = all.collect();
            all.dedup();
            kinds.push(vec![
                kind.kind.to_string(),
                format!("`{}` in kinds/{}/module.spv", kind.entry, kind.kind),
                kind.dispatches.to_string(),
                kind.label.clone().unwrap_or_default(),
                all.join(", "),
            ]);
        }
        let trim = |line: &str| format!("{}\n", line.trim_start());
        let text = |line: &HazardLine| format_hazard(line).lines().skip(1).map(trim).collect();
        let section = |line: &HazardLine| HazardSection { title: hazard_title(line), text: text(line) };
        let open = self.shaders.iter().filter(|(_, line)| line.verdict != RaceVerdict::Clean);
        RecordingPage {
            title: format!("Recording of {}", self.recording.program.join(" ")),
            summary: summary.to_owned(),
            processes: self.recording.processes.iter().map(picture).collect(),
            hazards: hazards.iter().map(section).collect(),
            kinds,
            shaders: open.map(|(_, line)| to_page(line)).collect(),
        }
    }
}
