//! Judges a recording: every kind of dispatch by its cases, and the order between commands.
//!
//! A dispatch without a case is judged by that of an equal dispatch if a taint analysis shows that no contents decide what it
//! accesses, or those that do were not written between the two. Everything else that is not judged is counted with the reason.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use ::record::barrier_groups::group_by_barrier;
use ::record::bindings::MemoryBindings;
use ::record::contents::{ContentVersions, content_versions};
use ::record::hazard::{ByteRange, ResourceBytes, ResourceId};
use ::record::hazards::find_hazards;
use ::record::journal::{BufferRange, Command, DispatchResource, Event, MissingInput, ProcessJournal};
use ::record::redundancy::find_redundant_barriers;
use ::record::timeline::{Timeline, build_timeline};
use campaign::contained_path::path_inside;
use campaign::parallel::process_in_order_on;
use campaign::recorded_contents::{hash_contents, unpack_contents};
use entry_point::{AnalysisOptions, DeadlinePredicate, FindingCause, inputs};
use results::wire::{
    FindingRecord, HazardLine, JUDGEMENT_SCHEMA, JudgementLine, RECORDING_SCHEMA, RaceLine, RaceVerdict,
    RecordedKind, RecordingRecord, UnjudgedCommand,
};
use spirv_reader::SpirvModule;
use vk_litmus::{RaceDetector, ShaderInputs, ShaderModule, program};
use walk::{AccessedBytes, MAX_TAINTED_BYTES, accessed_bytes, entry_accesses};

use super::super::race::summary::FileBar;
use super::RECORDING_FILE;
use super::answers::{AnswerWriter, JudgeOptions};
use super::draws::read_processes;
use super::hazard_lines::{hazard_line, redundant_line};
use super::inventory::{CommandNames, KindNumbers, number_kinds, parse_case_name};
use crate::exit::{Failure, Outcome};

/// Upper bound on the steps of the walk that finds the bytes of a dispatch.
const ACCESS_STEPS: u64 = 50_000_000;
/// The bound for each second of a longer time limit.
const ACCESS_STEPS_PER_SECOND: u64 = 2_500_000;

/// A case, by the process that recorded it and its number there.
type CaseId = (u32, u64);

/// The recorded inputs of a case.
struct CaseInputs<'a> {
    variant: u64,
    /// Hash of the text of the case.
    digest: &'a str,
    /// Missing ones that change what the shader may access.
    missing: &'a [MissingInput],
    /// Missing contents of resources whose sizes are known.
    contents: &'a [MissingInput],
    resources: &'a [DispatchResource],
    bindings: &'a MemoryBindings,
}

impl CaseInputs<'_> {
    /// Returns the pairs of resources that share memory, of which a case has one copy each, if the module may write one.
    fn shared_resources(
        &self,
        declared: Option<&BTreeMap<(u32, u32), bool>>,
        aliases: &BTreeMap<(u32, u32), (u32, u32)>,
    ) -> Vec<String> {
        let place = |resource: &DispatchResource| resource.set.zip(resource.binding);
        let buffer_of = |resource: &DispatchResource| {
            place(resource).map(|place| aliases.get(&place).copied().unwrap_or(place))
        };
        let may_write = |resource: &DispatchResource| match (place(resource), declared) {
            (Some(place), Some(declared)) => {
                declared.get(&place).map(|may_write| *may_write && resource.may_write)
            }
            _ => Some(true),
        };
        let name = |resource: &DispatchResource| match place(resource) {
            Some((set, binding)) => format!("{set}.{binding}[{}]", resource.element.unwrap_or(0)),
            None => resource.address_name().unwrap_or_default(),
        };
        let mut shared = Vec::new();
        for (index, one) in self.resources.iter().enumerate() {
            for other in self.resources.iter().take(index) {
                let is_alias = buffer_of(one).is_some_and(|one| buffer_of(other) == Some(one))
                    && place(one) != place(other);
                let has_write = may_write(one).zip(may_write(other)).is_some_and(|(one, other)| one || other);
                if has_write && !is_alias && self.bindings.is_overlap(one, other) {
                    shared.push(format!("the shared memory of {} and {}", name(other), name(one)));
                }
            }
        }
        shared
    }
}

/// The answer about a case.
struct CaseAnswer {
    /// The variant of its kind.
    variant: Option<u64>,
    /// The bytes that it accesses, or why they are not known.
    bytes: Result<AccessedBytes, String>,
    /// Why it is not judged.
    undecided: Option<String>,
}

impl CaseAnswer {
    /// Returns true if no contents decide what the shader accesses.
    fn is_fixed(&self) -> bool {
        self.bytes.as_ref().is_ok_and(AccessedBytes::is_fixed)
    }
}

/// The answer about a kind.
struct KindAnswer {
    kind: u64,
    lines: Vec<RaceLine>,
    cases: BTreeMap<CaseId, CaseAnswer>,
    /// The bindings that the entry point uses, with true if it may write them.
    declared: Option<BTreeMap<(u32, u32), bool>>,
}

/// Commands that are not judged, by name and reason.
type Unjudged = BTreeMap<(String, String), UnjudgedCommand>;

/// Judges a recording and prints the answers.
///
/// # Errors
/// If the recording cannot be read.
pub fn judge_recording(folder: &Path, options: &JudgeOptions, quiet: bool) -> Result<Outcome, Failure> {
    let path = folder.join(RECORDING_FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| Failure::file_error(&path, error))?;
    check_version(&path, &text)?;
    let recording: RecordingRecord = serde_json::from_str(&text).map_err(|error| {
        Failure::input_message(format!("{}: {error}; record the program again", path.display()))
    })?;
    let processes = read_processes(folder)?;
    let bindings: Vec<MemoryBindings> =
        processes.iter().map(|process| MemoryBindings::from_events(&process.events)).collect();
    let case_inputs = list_case_inputs(&processes, &bindings);
    let mut detector = RaceDetector::new().map_err(program::into_failure)?;
    // An answer is about the recorded inputs.
    detector = detector.time_limit(options.time_limit).skip_proofs();
    if let Some(end) = options.ends {
        detector = detector.ends_at(end);
    }
    let bar = FileBar::new(recording.kinds.len(), !quiet);
    let mut output = AnswerWriter::new(folder, &recording, options, quiet);
    let mut answers = BTreeMap::new();
    let workers = options.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let judge = |kind: &RecordedKind| {
        let answer = judge_kind(folder, kind, &case_inputs, &detector, options);
        bar.advance(&format!("kinds/{}", kind.kind));
        answer
    };
    process_in_order_on(workers, &recording.kinds, judge, |answer: Result<KindAnswer, Failure>| {
        let mut answer = answer?;
        for line in std::mem::take(&mut answer.lines) {
            bar.suspend(|| output.add_shader(answer.kind, line))?;
        }
        answers.insert(answer.kind, answer);
        Ok::<(), Failure>(())
    })?;
    bar.finish();
    let (hazards, judgement) = judge_commands(&processes, &answers);
    output.finish(&hazards, &judgement)
}

/// Checks the version of the record of a recording, which other versions write differently.
fn check_version(path: &Path, text: &str) -> Result<(), Failure> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        schema: String,
    }
    match serde_json::from_str(text) {
        Ok(Versioned { schema }) if schema != RECORDING_SCHEMA => Err(Failure::input_message(format!(
            "{}: a recording of version {schema}, and this vk-litmus reads {RECORDING_SCHEMA}: judge it with the vk-litmus that \
             recorded it, or record the program again",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Checks that a file of a recording has the hash that the layer recorded.
fn check_hash(path: &Path, contents: &[u8], hash: &str) -> Result<(), Failure> {
    if hash_contents(contents) == hash {
        return Ok(());
    }
    let why = "damaged: it does not have the recorded hash; record the program again";
    Err(Failure::input_message(format!("{}: {why}", path.display())))
}

/// Returns the commands of all recorded command buffers.
fn recorded_commands(process: &ProcessJournal) -> impl Iterator<Item = &Command> {
    process.events.iter().flat_map(|event| match event {
        Event::Commands { list, .. } => &list[..],
        _ => &[],
    })
}

/// Returns the recorded inputs of each case.
fn list_case_inputs<'a>(
    processes: &'a [ProcessJournal],
    bindings: &'a [MemoryBindings],
) -> BTreeMap<(u32, u64, u64), CaseInputs<'a>> {
    let mut all = BTreeMap::new();
    for (process, bindings) in processes.iter().zip(bindings) {
        let digest = |event: &'a Event| match event {
            Event::Case { kind, case, digest, .. } => Some(((*kind, *case), digest.as_str())),
            _ => None,
        };
        let digests: BTreeMap<(u64, u64), &str> = process.events.iter().filter_map(digest).collect();
        for command in recorded_commands(process) {
            if let Command::Dispatch {
                kind,
                case: Some(case),
                variant,
                missing,
                missing_contents: contents,
                resources,
                ..
            } = command
            {
                let digest = digests.get(&(*kind, *case)).copied().unwrap_or_default();
                let inputs = CaseInputs { variant: *variant, digest, missing, contents, resources, bindings };
                all.insert((process.process, *kind, *case), inputs);
            }
        }
    }
    all
}

/// Analyses the cases of a kind.
fn judge_kind(
    folder: &Path,
    kind: &RecordedKind,
    case_inputs: &BTreeMap<(u32, u64, u64), CaseInputs<'_>>,
    detector: &RaceDetector,
    limits: &JudgeOptions,
) -> Result<KindAnswer, Failure> {
    let mut answer =
        KindAnswer { kind: kind.kind, lines: Vec::new(), cases: BTreeMap::new(), declared: None };
    let name = format!("kinds/{}/module.spv", kind.kind);
    let module = folder.join(&name);
    let module_bytes = std::fs::read(&module).map_err(|error| Failure::file_error(&module, error))?;
    check_hash(&module, &module_bytes, &kind.module)?;
    let module = inputs::read_bound_module(&module_bytes, &AnalysisOptions::default());
    let compiler = module.as_ref().ok().and_then(SpirvModule::wgsl_compiler);
    let accesses = module.ok().and_then(|module| entry_accesses(&module, &kind.entry));
    answer.declared = accesses.map(|accesses| accesses.resources);
    for case in &kind.cases {
        let path = folder.join(case);
        let text = std::fs::read_to_string(&path).map_err(|error| Failure::file_error(&path, error))?;
        let read_file = |name: &str| {
            let path = path_inside(&path.with_file_name(""), name)?;
            unpack_contents(&path, std::fs::read(&path).map_err(|error| error.to_string())?)
        };
        let inputs = ShaderInputs::from_case(&text, &read_file).map_err(program::into_failure)?;
        let mut shader = ShaderModule::from_spirv(&name, module_bytes.clone());
        if let Some(compiler) = compiler {
            shader = shader.compiled_from_wgsl(compiler);
        }
        let Some((process, of, number)) = parse_case_name(&path) else { continue };
        if let Some(inputs) = case_inputs.get(&(process, of, number)) {
            check_hash(&path, text.as_bytes(), inputs.digest)?;
        }
        let variant = case_inputs.get(&(process, of, number)).map(|inputs| inputs.variant);
        let mut lacking: Vec<String> = Vec::new();
        let parsed = inputs::parse_case_file(&text, &read_file);
        if parsed.as_ref().is_ok_and(|case| case.options.grid.is_some_and(|grid| grid.contains(&0))) {
            let deciding = Some(BTreeSet::new());
            let nothing = AccessedBytes { is_complete: true, deciding, ..AccessedBytes::default() };
            let nothing = CaseAnswer { variant, bytes: Ok(nothing), undecided: None };
            answer.cases.insert((process, number), nothing);
            continue;
        }
        let mut bytes = match parsed {
            Ok(case) => {
                if let Some(inputs) = case_inputs.get(&(process, of, number)) {
                    lacking.extend(inputs.missing.iter().map(|input| input.what.clone()));
                    lacking.extend(inputs.shared_resources(answer.declared.as_ref(), &case.options.aliases));
                }
                let deadline = limits.ends.map(|end| DeadlinePredicate::new(move || Instant::now() >= end));
                walk_case(&module_bytes, &AnalysisOptions { deadline, ..case.options }, limits)
            }
            Err(error) => Err(error.to_string()),
        };
        let started = Instant::now();
        let mut lines: Vec<RaceLine> =
            detector.find_races(&shader, &inputs).into_iter().map(|found| found.line).collect();
        let hint = match limits.ends.is_some_and(|end| Instant::now() >= end) {
            true => "; --total-time raises it",
            false if started.elapsed() >= limits.time_limit => "; --time raises it",
            false => "",
        };
        // Buffers whose addresses the host writes after the command was recorded are not.
        let is_behind_memory =
            |finding: &FindingRecord| finding.cause.as_deref() == Some(FindingCause::NoBuffer.name());
        if lines.iter().flat_map(|line| &line.findings).any(is_behind_memory) {
            lacking.push("the buffers whose addresses are in memory".to_owned());
        }
        let is_fixed = bytes.as_ref().is_ok_and(AccessedBytes::is_fixed);
        if !lacking.is_empty() && !is_fixed {
            bytes = Err(format!("not recorded: {}", lacking.join(", ")));
        }
        let contents = case_inputs.get(&(process, of, number)).filter(|_| !is_fixed);
        let contents = contents.into_iter().flat_map(|inputs| inputs.contents);
        lacking.extend(contents.map(|input| input.what.clone()));
        if !lacking.is_empty() {
            let why = format!("not recorded: {}", lacking.join(", "));
            lines.iter_mut().for_each(|line| withdraw(line, &why));
        }
        let undecided = lines.iter().find_map(|line| match line.verdict {
            RaceVerdict::Clean | RaceVerdict::Racy => None,
            RaceVerdict::Refused | RaceVerdict::Undecided | RaceVerdict::NeedsInputs => {
                let why = line.why.as_deref().unwrap_or("its inputs do not decide");
                let hint = if line.verdict == RaceVerdict::Undecided { hint } else { "" };
                Some(format!("{}: {}{hint}", line.verdict, why.lines().next().unwrap_or_default()))
            }
        });
        answer.lines.append(&mut lines);
        answer.cases.insert((process, number), CaseAnswer { variant, bytes, undecided });
    }
    Ok(answer)
}

/// Makes an answer that rests on assumed inputs one without a verdict.
fn withdraw(line: &mut RaceLine, why: &str) {
    match line.verdict {
        RaceVerdict::Racy | RaceVerdict::Clean => {
            line.verdict = RaceVerdict::NeedsInputs;
            line.why = Some(match line.findings.len() {
                0 => why.to_owned(),
                count => {
                    format!("{why}; {count} findings with assumed inputs are not findings of the program")
                }
            });
            line.findings.clear();
            line.proof = None;
        }
        RaceVerdict::Refused | RaceVerdict::Undecided | RaceVerdict::NeedsInputs => {}
    }
}

/// Returns the bytes that a case accesses, or why they are not known.
fn walk_case(
    module: &[u8],
    options: &AnalysisOptions,
    limits: &JudgeOptions,
) -> Result<AccessedBytes, String> {
    let module = inputs::read_bound_module(module, options).map_err(|error| error.to_string())?;
    let steps = ACCESS_STEPS.max(limits.time_limit.as_secs().saturating_mul(ACCESS_STEPS_PER_SECOND));
    let bytes = accessed_bytes(&module, options, steps).map_err(|refusal| refusal.to_string())?;
    if bytes.is_complete {
        return Ok(bytes);
    }
    Err(match limits.ends.is_some_and(|end| Instant::now() >= end) {
        true => "the walk that finds its bytes reached the time limit of all answers; --total-time raises it"
            .to_owned(),
        false => {
            let longer = 2 * steps.div_ceil(ACCESS_STEPS_PER_SECOND);
            format!(
                "the walk that finds its bytes reached its limit of {} million steps; --time {longer}s doubles it",
                steps / 1_000_000
            )
        }
    })
}

/// Chooses the answers about the dispatches of a process.
struct DispatchAnswers<'a> {
    process: &'a ProcessJournal,
    numbers: &'a KindNumbers,
    answers: &'a BTreeMap<u64, KindAnswer>,
    /// The case with equal inputs, by kind in this process and number.
    equal: BTreeMap<(u64, u64), u64>,
    /// Cases whose dispatch was executed more than once.
    repeated: BTreeSet<(u64, u64)>,
    timeline: &'a Timeline<'a>,
    /// The first execution of each case of this process.
    executed: BTreeMap<(u64, u64), usize>,
    versions: ContentVersions,
}

impl DispatchAnswers<'_> {
    /// Returns true if an execution of a dispatch has the contents of a case where they decide what it accesses.
    fn has_contents_of(&self, kind: u64, id: CaseId, answer: &CaseAnswer, index: usize) -> bool {
        let deciding = answer.bytes.as_ref().ok().and_then(|bytes| bytes.deciding.as_ref());
        let case = self.executed.get(&(kind, id.1)).filter(|_| id.0 == self.process.process);
        let inputs = |index: usize| match self.timeline.commands.get(index)?.command {
            Command::Dispatch { resources, indirect, .. } => Some((resources, *indirect)),
            _ => None,
        };
        let both = case.and_then(|at| Some((*at, inputs(*at)?, inputs(index)?)));
        let (Some(deciding), Some((at, (recorded, grid), (resources, own_grid)))) = (deciding, both) else {
            return false;
        };
        let version = |index, resource: ResourceId| self.versions.get(&(index, resource));
        let is_equal = |one: Option<ResourceId>, other: Option<ResourceId>| {
            let one = one.and_then(|one| version(index, one));
            one.is_some() && one == other.and_then(|other| version(at, other))
        };
        let of_buffer = |range: Option<BufferRange>| range.map(|range| ResourceId::Buffer(range.buffer));
        if grid != own_grid || (grid.is_some() && !is_equal(of_buffer(own_grid), of_buffer(grid))) {
            return false;
        }
        let is_deciding = |resource: &&DispatchResource| {
            resource.set.zip(resource.binding).is_some_and(|place| deciding.contains(&place))
        };
        let mut pairs = resources.iter().zip(recorded.iter()).filter(|(one, _)| is_deciding(one));
        resources.len() == recorded.len()
            && pairs.all(|(one, other)| *one == *other && is_equal(one.id(), other.id()))
    }

    /// Returns why the answer about a case holds for no other execution; `contents` if contents decide what it accesses.
    fn describe_deciding(&self, answer: &CaseAnswer, contents: &'static str) -> Cow<'static, str> {
        match &answer.bytes {
            Err(why) => why.clone().into(),
            Ok(bytes) if bytes.deciding.is_some() => contents.into(),
            Ok(bytes) if !bytes.is_tracked => format!(
                "what decides its accesses is not computed for resources of more than {} MiB; --keep records more of them",
                MAX_TAINTED_BYTES >> 20
            )
            .into(),
            Ok(_) => "the order of its invocations, or an address, decides what it accesses; try --keep".into(),
        }
    }

    /// Returns the case whose answer holds for an execution of a dispatch, and true if it is its own; or why none does.
    fn case_of(&self, index: usize, command: &Command) -> Result<(&CaseAnswer, bool), Cow<'static, str>> {
        let Command::Dispatch { kind, case, variant, missing, indirect, .. } = command else {
            return Err("not a dispatch".into());
        };
        let number = self.numbers.get(&(self.process.process, *kind));
        let number = number.ok_or("its kind was not recorded")?;
        let cases = self.answers.get(number).map(|answer| &answer.cases).filter(|cases| !cases.is_empty());
        let cases =
            cases.ok_or("its inputs were not recorded, or the program ended before they were written")?;
        let equal = case.map(|case| self.equal.get(&(*kind, case)).copied().unwrap_or(case));
        let is_repeated = case.is_some_and(|case| self.repeated.contains(&(*kind, case)));
        if let Some(own) = equal.and_then(|case| cases.get(&(self.process.process, case))) {
            // The copy is of the first execution.
            let is_own = !is_repeated || (own.is_fixed() && indirect.is_none());
            let own_id = (self.process.process, equal.unwrap_or_default());
            if is_own || self.has_contents_of(*kind, own_id, own, index) {
                return Ok((own, is_own));
            }
            return Err(self.describe_deciding(
                own,
                "its command buffer was executed again, and contents decide what it accesses",
            ));
        }
        if !missing.is_empty() {
            return Err("its descriptors were recorded in part".into());
        }
        let mut equal = cases.iter().filter(|(_, answer)| answer.variant == Some(*variant)).peekable();
        if equal.peek().is_none() {
            return Err(
                "its push constants or the sizes of its resources were not recorded; try --keep".into()
            );
        }
        let open = equal.peek().map(|(_, answer)| *answer);
        let is_equal = |id: CaseId, answer: &CaseAnswer| {
            (answer.is_fixed() && indirect.is_none()) || self.has_contents_of(*kind, id, answer, index)
        };
        let shared = equal.find(|(id, answer)| is_equal(**id, answer)).map(|(_, answer)| answer);
        let why = "contents that were not recorded decide what it accesses; try --keep";
        let why = || open.map_or(why.into(), |answer| self.describe_deciding(answer, why));
        Ok((shared.ok_or_else(why)?, false))
    }

    /// Returns true if all that a command accesses is recorded.
    fn has_known_accesses(&self, index: usize, command: &Command) -> bool {
        match command {
            Command::Dispatch { missing, .. } => {
                missing.is_empty()
                    && self.case_of(index, command).is_ok_and(|(answer, _)| answer.bytes.is_ok())
            }
            Command::Other(other) => other.unknown.is_none(),
            Command::Barrier { .. }
            | Command::SetEvent { .. }
            | Command::Label { .. }
            | Command::EndLabel
            | Command::Subpass { .. } => true,
        }
    }

    /// Returns the bytes of a resource that a dispatch accesses; all that it may access if they are not known.
    fn bytes_of(&self, index: usize, command: &Command, resource: &DispatchResource) -> ResourceBytes {
        let Command::Dispatch { kind, missing, missing_contents, .. } = command else {
            return ResourceBytes::default();
        };
        let place = resource.binding.map(|binding| (resource.set.unwrap_or(0), binding));
        let known = self.case_of(index, command).ok().and_then(|(answer, _)| answer.bytes.as_ref().ok());
        let known =
            known.filter(|bytes| missing.is_empty() && (missing_contents.is_empty() || bytes.is_fixed()));
        if let Some(bytes) = known {
            let access = match place {
                Some((set, binding)) => bytes.bindings.get(&(set, binding, resource.element.unwrap_or(0))),
                None => resource.address_name().and_then(|name| bytes.addresses.get(&name)),
            };
            let access = access.cloned().unwrap_or_default();
            // An image has 16 bytes per texel in a walk.
            let of_buffer = |ranges: Vec<ByteRange>| match resource.texel_bytes {
                None => ranges,
                Some(bytes) => {
                    let texel = |from: u64, to: u64| (from / 16 * bytes, to.div_ceil(16) * bytes);
                    ranges.into_iter().map(|(from, to)| texel(from, to)).collect()
                }
            };
            let (reads, writes) = (of_buffer(access.reads), of_buffer(access.writes));
            return ResourceBytes { reads, writes, is_possible: false };
        }
        let (may_read, may_write) =
            possible_accesses((self.process.process, *kind), self.numbers, self.answers, resource);
        let all = |may_access: bool| if may_access { vec![(0, u64::MAX)] } else { Vec::new() };
        ResourceBytes { reads: all(may_read), writes: all(may_write), is_possible: true }
    }
}

/// Returns whether the entry point of a kind in a process may read a resource, and whether it may write it.
fn possible_accesses(
    kind: (u32, u64),
    numbers: &KindNumbers,
    answers: &BTreeMap<u64, KindAnswer>,
    resource: &DispatchResource,
) -> (bool, bool) {
    let declared = numbers.get(&kind).and_then(|number| answers.get(number)?.declared.as_ref());
    match declared.zip(resource.set.zip(resource.binding)) {
        Some((declared, place)) => match declared.get(&place) {
            Some(may_write) => (true, *may_write && resource.may_write),
            None => (false, false),
        },
        None => (true, resource.may_write),
    }
}

/// Finds the hazards of each process, and what is not judged.
fn judge_commands(
    processes: &[ProcessJournal],
    answers: &BTreeMap<u64, KindAnswer>,
) -> (Vec<HazardLine>, JudgementLine) {
    let numbers = number_kinds(processes);
    let (mut lines, mut unjudged) = (Vec::new(), Unjudged::new());
    let mut judgement = JudgementLine { schema: JUDGEMENT_SCHEMA.to_owned(), ..JudgementLine::default() };
    for process in processes {
        let timeline = build_timeline(&process.events);
        let equal = process.events.iter().filter_map(|event| match event {
            Event::Case { kind, case, equal, .. } if *equal != 0 => Some(((*kind, *case), *equal)),
            _ => None,
        });
        let (mut first, mut repeated) = (BTreeMap::new(), BTreeSet::new());
        for (index, executed) in timeline.commands.iter().enumerate() {
            if let Command::Dispatch { kind, case: Some(case), .. } = executed.command {
                let known = *first.entry((*kind, *case)).or_insert(index);
                repeated.extend((known != index).then_some((*kind, *case)));
            }
        }
        let may_write = |command: &Command, resource: Option<&DispatchResource>| {
            let Command::Dispatch { kind, .. } = command else { return true };
            let kind = (process.process, *kind);
            match resource {
                Some(resource) => possible_accesses(kind, &numbers, answers, resource).1,
                // Behind addresses in memory, for example.
                None => {
                    let answer = numbers.get(&kind).and_then(|number| answers.get(number));
                    answer.is_none_or(|answer| answer.cases.values().all(|case| case.bytes.is_err()))
                }
            }
        };
        let chosen = DispatchAnswers {
            process,
            numbers: &numbers,
            answers,
            equal: equal.collect(),
            repeated,
            timeline: &timeline,
            executed: first,
            versions: content_versions(&timeline, &process.events, may_write),
        };
        let names = CommandNames::new(&process.events);
        count_commands(process, &names, &timeline, &chosen, &mut judgement, &mut unjudged);
        let bytes_of = |index: usize, command: &Command, resource: &DispatchResource| {
            chosen.bytes_of(index, command, resource)
        };
        let hazards = find_hazards(&timeline, &process.events, bytes_of);
        let hazards = group_by_barrier(&timeline, hazards);
        lines.extend(hazards.iter().filter_map(|group| hazard_line(process, &names, &timeline, group)));
        // An access that is not known may need any barrier.
        let mut executions = timeline.commands.iter().enumerate();
        if executions.all(|(index, executed)| chosen.has_known_accesses(index, executed.command)) {
            let barriers = find_redundant_barriers(&timeline, &process.events, bytes_of);
            let line = |one| redundant_line(process.process, &names, &timeline, one);
            judgement.redundant_barriers.extend(barriers.redundant.into_iter().map(line));
            judgement.checked_barriers += barriers.checked;
        }
    }
    judgement.hazards = lines.iter().filter(|line| !line.is_possible).count() as u64;
    let possible = lines.iter().filter(|line| line.is_possible && !line.is_information);
    judgement.possible_hazards = possible.count() as u64;
    judgement.unjudged = unjudged.into_values().collect();
    (lines, judgement)
}

/// Counts the commands of a process that are judged, and those that are not.
fn count_commands(
    process: &ProcessJournal,
    names: &CommandNames<'_>,
    timeline: &Timeline<'_>,
    chosen: &DispatchAnswers<'_>,
    judgement: &mut JudgementLine,
    unjudged: &mut Unjudged,
) {
    let mut add = |what: String, why: &str, index: Option<u64>| {
        let entry = unjudged.entry((what.clone(), why.to_owned())).or_insert_with(|| UnjudgedCommand {
            what,
            why: why.to_owned(),
            count: 0,
            process: process.process,
            first: index,
        });
        entry.count += 1;
    };
    for (index, executed) in timeline.commands.iter().enumerate() {
        let why = match executed.command {
            Command::Dispatch { .. } => match chosen.case_of(index, executed.command) {
                Err(why) => Some(why.into_owned()),
                Ok((answer, is_own)) => {
                    let why = answer.undecided.clone();
                    let bytes = answer.bytes.as_ref().err();
                    let why = why.or_else(|| bytes.map(|why| format!("order: {why}")));
                    judgement.dispatches_by_equal_case += u64::from(!is_own && why.is_none());
                    why
                }
            },
            Command::Other(other) => other.unknown.clone(),
            Command::Barrier { .. }
            | Command::SetEvent { .. }
            | Command::Label { .. }
            | Command::EndLabel
            | Command::Subpass { .. } => continue,
        };
        let is_dispatch = matches!(executed.command, Command::Dispatch { .. });
        judgement.commands += 1;
        judgement.dispatches += u64::from(is_dispatch);
        match why {
            None => {
                judgement.judged_commands += 1;
                judgement.judged_dispatches += u64::from(is_dispatch);
            }
            Some(why) => add(names.describe_command(executed.command), &why, Some(index as u64)),
        }
    }
    let whole = format!("process {}", process.process);
    if process.is_truncated {
        add(whole.clone(), "its journal is not complete: it was killed, or the disk was full", None);
    }
    if timeline.commands.is_empty() {
        add(whole, "it executed no commands", None);
    }
    for event in &process.events {
        if let Event::UncheckedMapping { size, .. } = event {
            let what = format!("writes of the host to {size} mapped bytes");
            add(what, "mapped memory of this size is not compared", None);
        } else if let Event::Case { is_written: false, is_wanted: true, .. } = event {
            add("recorded inputs".to_owned(), "they could not be written: the disk may be full", None);
        }
    }
}
