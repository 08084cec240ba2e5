//! `race`: what is wrong with shaders, over whole grids.

use campaign::patience::patience;
use explanation::{ShaderAnswer, ShaderFinding, ShaderPlace};
use frontend::grid::{GridFinding, GridSpot, Report, Verdict};
use frontend::{Module, Options, Place, Refusal, WalkedChange, WalkedMends, mend_walked};
use litmus::Test;
use model::{Budget, Model};
use results::wire::{
    FindingPlace, FindingRecord, MendRecord, RACE_SCHEMA, RaceCoverage, RaceLine, RaceVerdict, RaceWitness,
};
use results::write::json::Lines;
use results::write::sarif;

use crate::arguments::{Race, RaceFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{Data, cannot_print, say};
use crate::source::{self, Shader, SourceError};

/// Runs the command.
///
/// # Errors
/// What ended it early; what is wrong with a single shader does not.
pub fn race(arguments: &Race, quiet: bool) -> Result<Outcome, Failure> {
    let (schedules, seed) = (arguments.schedules, arguments.seed);
    let options = Options { schedules, seed, ..arguments.kernel.options(None)? };
    let model =
        Model::shipped("vulkan").ok_or_else(|| Failure::input_message("no model `vulkan`".to_owned()))?;
    let model = model.map_err(|error| Failure::input_message(error.to_string()))?;
    let (mut out, mut outcome) = (Data::new(), Outcome::Success);
    let (mut log, mut page) = (sarif::Check::new(Vec::new()), Vec::new());
    for file in &arguments.shaders {
        let shader = source::load(file, &arguments.kernel);
        // A compiler that is missing is no mistake of the shader.
        let refusal = shader.as_ref().err().map_or(Outcome::Input, |error| Outcome::from(&error.failure()));
        for (line, tests) in lines(file, shader, &options, &model, arguments) {
            outcome.note(match line.verdict {
                RaceVerdict::Racy => Outcome::RuleBroken,
                RaceVerdict::Clean => Outcome::Success,
                RaceVerdict::Refused => refusal,
                RaceVerdict::Undecided => Outcome::Environment,
            });
            if let Some(why) = line.why.as_ref().filter(|_| !quiet && arguments.format == RaceFormat::Json) {
                say(why);
            }
            if arguments.emit.is_some() {
                for (test, finding) in tests.iter().zip(&line.findings) {
                    match test {
                        Some(test) => out.print(&litmus::print(test))?,
                        None if quiet => {}
                        None => say(&format!("no litmus test of two invocations: {}", finding.message)),
                    }
                }
                continue;
            }
            match arguments.format {
                RaceFormat::Json => Lines::new(&mut out).write(&line).map_err(cannot_print)?,
                RaceFormat::Text => out.print(&text(&line))?,
                RaceFormat::Sarif => log.findings(&line.file, &line.findings),
                RaceFormat::Html => page.push(page_of(&line)),
            }
        }
    }
    match arguments.format {
        RaceFormat::Sarif if arguments.emit.is_none() => {
            out.print(&String::from_utf8_lossy(&log.written().map_err(cannot_print)?))?;
        }
        RaceFormat::Html if arguments.emit.is_none() => out.print(&explanation::shaders(&page))?,
        _ => {}
    }
    Ok(outcome)
}

/// What a page shows of an answer.
fn page_of(line: &RaceLine) -> ShaderAnswer {
    let covers = Some(&line.coverage.words).filter(|words| !words.is_empty());
    let covers = covers.map(|words| format!("For {words}."));
    let notes = covers.into_iter().chain(line.why.clone()).collect();
    shown(
        format!("{} {}", line.file, line.entry),
        line.verdict.to_string(),
        notes,
        &line.findings,
        &line.file,
    )
}

/// What a page shows of findings: the lines of the sources that can be read.
pub fn shown(
    title: String,
    verdict: String,
    notes: Vec<String>,
    findings: &[FindingRecord],
    file: &str,
) -> ShaderAnswer {
    let place = |place: &FindingPlace| {
        let file = place.file.clone().unwrap_or_else(|| file.to_owned());
        let who = place.invocation.as_deref().map(|who| format!(" by invocation {who}")).unwrap_or_default();
        ShaderPlace {
            what: format!("{}{who}", place.access.as_deref().unwrap_or("reached")),
            source: std::fs::read_to_string(&file).ok(),
            file,
            line: place.line,
        }
    };
    let finding = |finding: &FindingRecord| ShaderFinding {
        kind: finding.kind.clone(),
        message: finding.message.clone(),
        places: finding.at.iter().map(place).collect(),
        mend: finding.mend.iter().map(MendRecord::placed).collect(),
    };
    ShaderAnswer { title, verdict, notes, findings: findings.iter().map(finding).collect() }
}

/// What is said of each entry point of a shader, or of the one that is asked for; with a litmus test for each finding that has
/// one, where these are asked for.
fn lines(
    file: &str,
    shader: Result<Shader, SourceError>,
    options: &Options,
    model: &Model,
    arguments: &Race,
) -> Vec<(RaceLine, Vec<Option<Test>>)> {
    let refused = |entry: &str, why: String| vec![(refused(file, entry, options, why), Vec::new())];
    let shader = match shader {
        Ok(shader) => shader,
        Err(why) => return refused("", why.to_string()),
    };
    let module = match frontend::read(&shader.module) {
        Ok(module) => module,
        Err(why) => return refused("", format!("{file}:{why}")),
    };
    let entries: Vec<String> = match &options.entry {
        Some(entry) => vec![entry.clone()],
        None => module.entry_points().into_iter().map(str::to_owned).collect(),
    };
    if entries.is_empty() {
        return refused("", format!("{file}: {}", module.no_entry_point()));
    }
    let judged = |entry: String| {
        let options = Options { entry: Some(entry.clone()), ..options.clone() };
        let stop = patience(arguments.timeout);
        let report = match frontend::judge(&module, &options, model, Budget::until(&stop)) {
            Ok(report) => report,
            Err(refusal) => return refused(&entry, placed(file, &module, &refusal)),
        };
        let test = |(number, finding): (usize, &GridFinding)| {
            let mut test = frontend::smallest(&module, &options, model, Budget::until(&stop), finding)?;
            test.name = format!("{}-{}", test.name, number + 1);
            Some(test)
        };
        let wanted = report.findings.iter().enumerate().filter(|_| arguments.emit.is_some());
        let tests = wanted.map(test).collect();
        let mends = mend_walked(&module, &options, &report, &stop);
        let mut line = answered(file, &module, report);
        mend(&mut line, &module, &mends);
        vec![(line, tests)]
    };
    entries.into_iter().flat_map(judged).collect()
}

/// A refusal with the source that its line is of.
fn placed(file: &str, module: &Module, refusal: &Refusal) -> String {
    let source = match refusal.place {
        Place::Line(line) => module.file_of(line),
        Place::Word(_) | Place::Module => None,
    };
    format!("{}:{refusal}", source.unwrap_or(file))
}

fn refused(file: &str, entry: &str, options: &Options, why: String) -> RaceLine {
    RaceLine {
        schema: RACE_SCHEMA.to_owned(),
        file: file.to_owned(),
        entry: entry.to_owned(),
        grid: options.grid.unwrap_or([1; 3]),
        local_size: None,
        subgroup_size: options.subgroup_size.unwrap_or_default(),
        verdict: RaceVerdict::Refused,
        why: Some(why),
        findings: Vec::new(),
        coverage: RaceCoverage::default(),
    }
}

/// What is published of a report.
pub fn answered(file: &str, module: &Module, report: Report) -> RaceLine {
    let invocations = report.grid.iter().chain(&report.local_size).map(|count| u64::from(*count)).product();
    RaceLine {
        schema: RACE_SCHEMA.to_owned(),
        file: file.to_owned(),
        entry: report.entry,
        grid: report.grid,
        local_size: Some(report.local_size),
        subgroup_size: report.subgroup_size,
        verdict: match report.verdict {
            Verdict::Racy => RaceVerdict::Racy,
            Verdict::Clean => RaceVerdict::Clean,
            Verdict::Undecided => RaceVerdict::Undecided,
        },
        why: report.why.map(|refusal| placed(file, module, &refusal)),
        findings: report.findings.iter().map(|found| record(file, module, found)).collect(),
        coverage: RaceCoverage {
            words: report.coverage,
            by: Some(if report.by_model { RaceWitness::Model } else { RaceWitness::Walk }),
            invocations,
            every_order: !report.ordered,
            orders: report.orders,
            steps: report.steps,
        },
    }
}

/// Puts what mends findings beside them.
fn mend(line: &mut RaceLine, module: &Module, mends: &WalkedMends) {
    for (finding, changes) in line.findings.iter_mut().zip(&mends.of) {
        let change = |change: &WalkedChange| {
            let (file, number) = placed_in(&line.file, module, change.line, change.place);
            MendRecord { file: Some(file), line: number, text: change.text.clone() }
        };
        finding.mend = changes.iter().map(change).collect();
    }
}

/// The file and the line of a place.
fn placed_in(file: &str, module: &Module, line: u32, place: Place) -> (String, Option<u32>) {
    let source = module.source_line(line);
    let named = source.filter(|source| !source.file.is_empty()).map(|source| source.file.clone());
    let line = match (source, place) {
        (Some(source), _) => Some(source.line),
        (None, Place::Line(line)) => Some(line),
        (None, _) => None,
    };
    (named.unwrap_or_else(|| file.to_owned()), line)
}

/// A finding as it is published.
pub fn record(file: &str, module: &Module, found: &GridFinding) -> FindingRecord {
    let place = |spot: &GridSpot| {
        let (source, line) = placed_in(file, module, spot.line, spot.place);
        FindingPlace {
            file: Some(source),
            line,
            invocation: Some(spot.invocation.to_string()),
            access: spot.access.map(|writes| if writes { "write" } else { "read" }.to_owned()),
        }
    };
    let at = found.at.iter().map(place).collect();
    FindingRecord { kind: found.kind.name().to_owned(), message: found.message.clone(), at, mend: Vec::new() }
}

/// The same for people.
pub fn text(line: &RaceLine) -> String {
    let entry = if line.entry.is_empty() { String::new() } else { format!(" `{}`", line.entry) };
    let mut text = format!("{}{entry}: {}\n", line.file, line.verdict);
    if !line.coverage.words.is_empty() {
        text += &format!("  for {}\n", line.coverage.words);
    }
    if let Some(why) = &line.why {
        text += &format!("  {why}\n");
    }
    for finding in &line.findings {
        text += &format!("  {}: {}\n", finding.kind, finding.message);
        for place in &finding.at {
            let access = place.access.as_deref().unwrap_or("at");
            let number = place.line.map_or(String::new(), |line| format!(":{line}"));
            text += &format!("    {access} {}{number}\n", place.file.as_deref().unwrap_or(""));
        }
        for (number, change) in finding.mend.iter().enumerate() {
            let lead = if number == 0 { "mend" } else { "and" };
            text += &format!("    {lead} {}\n", change.placed());
        }
    }
    text
}
