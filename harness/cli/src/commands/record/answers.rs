//! Answers about a recording in the requested format.

use std::path::Path;
use std::time::{Duration, Instant};

use campaign::shader::race::to_page;
use explanation::RecordingPage;
use results::wire::{HazardLine, JudgementLine, RaceLine, RaceVerdict, RecordingRecord};
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
                _ if line.is_information => continue,
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
        if hazards.iter().all(|line| line.is_information) {
            let count = format!("{} commands", judgement.judged_commands);
            self.junit.add_answer("order", &count, AnswerStatus::Success, "");
        }
        let lines: Vec<RaceLine> = self.shaders.iter().map(|(_, line)| line.clone()).collect();
        let summary = format_judgement(self.recording, &lines, judgement);
        let page = |writer: &Self| writer.page(hazards, judgement, &summary);
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

    /// Returns the page of the answers.
    fn page(&self, hazards: &[HazardLine], judgement: &JudgementLine, summary: &str) -> String {
        let verdicts: Vec<_> = self.shaders.iter().map(|(kind, line)| (*kind, line.verdict)).collect();
        let open = self.shaders.iter().filter(|(_, line)| line.verdict != RaceVerdict::Clean);
        let shaders: Vec<_> = open.map(|(_, line)| to_page(line)).collect();
        let (recording, verdicts, shaders) = (self.recording, &verdicts, &shaders);
        let page = RecordingPage { recording, hazards, judgement, verdicts, summary, shaders };
        explanation::recording(&page, &command_line())
    }
}
