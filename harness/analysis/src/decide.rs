//! Decides whether a kernel is racy: by a walk over its whole grid, and by the model if the walk is
//! incomplete.
//!
//! The model is exhaustive but accepts only small grids. It runs only if the walk is schedule-dependent or
//! hit a limit, and its answer replaces the walk's.

use lint::awaited_atomics;
use litmus::Race;
use model::{Budget, Model};
use spirv_reader::{SourcePosition, SpirvModule, Stage};

use crate::axes::repeats_in_each_workgroup;
use crate::choose::{InputChoice, are_zero_counters};
use crate::clean_checks::{check_barriers, find_with_other_subgroup_sizes, note_waiting};
use crate::needs::{chosen_constants, describe_launch, list_choice, needed_inputs};
use crate::sizes::{needed_sizes, with_larger_sizes};
use entry_point::input_place::{AssumedInput, InputPlace};
use entry_point::launch::wider_grid;
use entry_point::{AnalysisOptions, FindingCause, FindingKind, Problem, Refusal};
use symbolic::{ModelQuery, answer_with_model, lift};
use walk::{
    Blocked, CoverageLimit, DecidingModel, GridFinding, GridReport, NeededInput, RaceVerdict,
    WiderGridFinding, line_ranges,
};

/// Upper bound on the findings that an answer lists for inputs that it needs.
const MAX_LISTED: usize = 3;
/// Upper bound on the times that larger sizes are chosen: what is read of them may lead to further accesses.
const MAX_SIZE_ROUNDS: usize = 3;

/// Analyzes a kernel for races and other defects.
///
/// # Errors
/// Returns the position of what is malformed, or beyond the walk and the model.
pub fn decide(
    module: &SpirvModule,
    options: &AnalysisOptions,
    model: &Model,
    budget: Budget<'_>,
) -> Result<GridReport, Refusal> {
    let (mut report, options) = decide_with_sizes(module, options.clone(), model, budget)?;
    if report.verdict == RaceVerdict::Clean && !report.exceeded.is_empty() {
        report.verdict = RaceVerdict::NeedsInputs;
        report.needs = needed_sizes(&options, &report.exceeded);
    }
    Ok(report)
}

/// Analyzes a kernel for races and other defects, with the given sizes of buffers and images.
fn decide_for_sizes(
    module: &SpirvModule,
    options: &AnalysisOptions,
    model: &Model,
    budget: Budget<'_>,
) -> Result<GridReport, Refusal> {
    let mut result = decide_by_walk_and_model(module, options, model, budget);
    if let Ok(report) = &mut result
        && report.verdict == RaceVerdict::Clean
    {
        if let Some(wider) = find_with_two_workgroups(module, options) {
            report.limits.push(CoverageLimit::WiderGrid(wider.clone()));
            report.two_workgroup_finding = Some(wider);
        } else if is_for_one_workgroup(module, options, report.stage) {
            report.limits.push(CoverageLimit::OneWorkgroup);
        }
    }
    result
}

/// The answer for chosen inputs.
#[derive(Clone, Debug)]
pub struct InputChoiceReport {
    /// The report over all choices.
    pub report: GridReport,
    /// The choice that shows the findings, else the first.
    pub options: AnalysisOptions,
    /// The other choices that show further findings.
    pub(crate) further_options: Vec<AnalysisOptions>,
    /// The checks of the time that the choice of inputs and the walks made.
    pub(crate) time_checks: u64,
    /// The code that one invocation alone reaches, because contents equal a number.
    pub(crate) reached_by_equality: Vec<Blocked>,
    /// The number of findings that the source language does not define, if not all; these come first.
    pub(crate) undefined_findings: Option<usize>,
}

impl InputChoiceReport {
    pub(crate) fn new(report: GridReport, options: AnalysisOptions) -> InputChoiceReport {
        InputChoiceReport {
            report,
            options,
            further_options: Vec::new(),
            time_checks: 0,
            reached_by_equality: Vec::new(),
            undefined_findings: None,
        }
    }

    /// Puts findings of the source before those that only the module has.
    pub(crate) fn put_first(&mut self, mut of_source: Vec<GridFinding>) {
        self.undefined_findings = Some(of_source.len());
        let is_new =
            |one: &GridFinding| of_source.iter().all(|known| known.finding_key() != one.finding_key());
        let others: Vec<GridFinding> =
            self.report.findings.iter().filter(|one| is_new(one)).cloned().collect();
        of_source.extend(others);
        self.report.findings = of_source;
    }
}

/// Analyzes a kernel for each choice of inputs.
///
/// Findings that exist only because of an assumed value, and lines that only it keeps from being reached, make
/// the verdict [`RaceVerdict::NeedsInputs`].
///
/// # Errors
/// See [`decide`]; errors of further choices are ignored.
pub fn decide_choice(
    module: &SpirvModule,
    given: &AnalysisOptions,
    choice: &InputChoice,
    model: &Model,
    budget: Budget<'_>,
) -> Result<InputChoiceReport, Refusal> {
    let Some(first) = choice.choices.first() else {
        let report = decide(module, given, model, budget)?;
        return Ok(InputChoiceReport::new(report, given.clone()));
    };
    let decide_one = |options: &AnalysisOptions| {
        let options = AnalysisOptions { deadline: given.deadline.clone(), ..options.clone() };
        decide_widened(module, options, choice, model, budget)
    };
    let first = decide_one(first)?;
    let longer_chains = choice.with_longer_chain(&first.report.blocked);
    // The model covers every execution from ordinary counters and flags; others only reach more code.
    let is_decided = first.report.model.is_some() && choice.has_ordinary_counters(&first.options);
    let others =
        choice.choices[1..].iter().filter(|other| !is_decided || choice.has_ordinary_counters(other));
    let others = others.cloned().chain(longer_chains);
    let others = others.filter_map(|other| decide_one(&other).ok()).collect();
    let mut decided = DecidedChoices { module, given, choice, first, others };
    let classes = decided.classify();
    decided.merge();
    Ok(decided.conclude(classes))
}

/// The reports of all choices.
struct DecidedChoices<'a> {
    module: &'a SpirvModule,
    given: &'a AnalysisOptions,
    choice: &'a InputChoice,
    first: InputChoiceReport,
    others: Vec<InputChoiceReport>,
}

/// The findings of all choices, by what they depend on.
#[derive(Default)]
struct FindingClasses {
    /// Those that hold whatever the chosen inputs are.
    certain: Vec<GridFinding>,
    /// The choices that show some of them.
    showing: Vec<AnalysisOptions>,
    /// Those that assumed values decide, with these values.
    dependent: Vec<(GridFinding, AnalysisOptions)>,
    /// Those that the assumed grid decides, with the grid.
    due_to_grid: Vec<(GridFinding, Option<String>)>,
    /// Those that the assumed subgroup size decides, with the size that shows them.
    due_to_subgroups: Vec<(GridFinding, u32)>,
    /// Index among the further choices of the one that shows the first certain finding.
    shown_by: Option<usize>,
    /// Index of the one that shows the first other finding.
    open_shown_by: Option<usize>,
}

impl DecidedChoices<'_> {
    /// Takes the findings of each choice and classifies them.
    fn classify(&mut self) -> FindingClasses {
        let DecidedChoices { module, given, choice, .. } = *self;
        let mut classes = FindingClasses::default();
        // A kernel may be written for as many workgroups as reach its code.
        let (small, covered) = (self.first.report.grid, self.first.report.reached.clone());
        let is_in_larger_grid = |found: &GridFinding, report: &GridReport| {
            let mut blocks = found.blocks.iter();
            // A longer chain shows what its workgroups read of each other in any grid of this length.
            choice.choices.iter().any(|one| one.grid == Some(report.grid))
                && choice.may_choose_grid()
                && found.kind.is_race()
                && (0..3).any(|axis: usize| report.grid[axis] > small[axis])
                && !found.blocks.is_empty()
                && blocks.all(|block| covered.get(*block as usize) == Some(&true))
        };
        let reports = std::iter::once(&mut self.first).chain(&mut self.others);
        for (index, InputChoiceReport { report, options, .. }) in reports.enumerate() {
            let mut certain = Vec::new();
            for mut found in std::mem::take(&mut report.findings) {
                found.inputs.extend(choice.other_sizes(options));
                let is_first = classes.dependent.is_empty() && classes.due_to_grid.is_empty();
                if choice.depends_on_values(module, &found, options) {
                    classes.dependent.push((found, options.clone()));
                } else if choice.is_due_to_grid(&found, options) || is_in_larger_grid(&found, report) {
                    let grid = describe_grid(options, &found);
                    classes.due_to_grid.push((found, grid));
                } else {
                    certain.push(found);
                    continue;
                }
                if is_first {
                    classes.open_shown_by = index.checked_sub(1);
                }
            }
            let due_to_wide_grid = take_due_to_wide_grid(module, options, choice, &mut certain);
            classes.due_to_grid.extend(due_to_wide_grid.into_iter().map(|found| {
                let grid = describe_grid(options, &found);
                (found, grid)
            }));
            if index == 0 {
                let sizes = (given, &*options);
                let due = take_due_to_subgroup_size(module, sizes, report, &mut certain).into_iter();
                classes.due_to_subgroups =
                    due.filter_map(|found| Some((found, options.subgroup_size?))).collect();
                if certain.is_empty() && classes.dependent.is_empty() {
                    classes.due_to_subgroups.extend(find_with_other_subgroup_sizes(module, sizes, report));
                }
            } else if classes.certain.is_empty() && !certain.is_empty() {
                classes.shown_by = Some(index - 1);
            }
            let known_count = classes.certain.len();
            for found in certain {
                let is_known = |known: &GridFinding| {
                    known.finding_key() == found.finding_key() && known.at.len() == found.at.len()
                };
                if index == 0 || !classes.certain.iter().any(is_known) {
                    classes.certain.push(found);
                }
            }
            if classes.certain.len() > known_count {
                classes.showing.push(options.clone());
            }
        }
        classes
    }

    /// Merges what the further choices reached into the first report.
    fn merge(&mut self) {
        let report = &mut self.first.report;
        let had_unreached = report.unreached_limit(self.module);
        for InputChoiceReport { report: more, .. } in &self.others {
            report.reached.iter_mut().zip(&more.reached).for_each(|(known, now)| *known |= now);
            // A line counts as unreached only if no choice reaches it.
            report.unreached.retain(|line| more.unreached.contains(line));
            report.blocked.extend(more.blocked.iter().cloned());
            report.is_schedule_dependent |= more.is_schedule_dependent;
            report.has_partial_subgroups |= more.has_partial_subgroups;
            report.steps += more.steps;
            report.exceeded.extend(more.exceeded.iter().cloned());
            if let (None, Some(wider)) = (&report.two_workgroup_finding, &more.two_workgroup_finding) {
                report.limits.push(CoverageLimit::WiderGrid(wider.clone()));
                report.two_workgroup_finding = Some(wider.clone());
            }
        }
        // The limits still name the lines that the first choice left unreached.
        if had_unreached.is_some() && !self.others.is_empty() {
            let still_unreached = report.unreached_limit(self.module);
            if let Some(known) =
                report.limits.iter().position(|limit| matches!(limit, CoverageLimit::Unreached(_)))
            {
                report.limits.splice(known..=known, still_unreached);
            }
        }
    }

    /// Returns the verdict: first what is certain decides, then what inputs decide, then what the grid decides.
    fn conclude(self, classes: FindingClasses) -> InputChoiceReport {
        let DecidedChoices { module, given, choice, first, others } = self;
        let InputChoiceReport { mut report, options: first, .. } = first;
        let FindingClasses {
            certain,
            showing,
            dependent,
            due_to_grid,
            due_to_subgroups,
            shown_by,
            open_shown_by,
        } = classes;
        let due = due_to_grid.iter().map(|(found, _)| found);
        let open = dependent
            .iter()
            .map(|(found, _)| found)
            .chain(due)
            .chain(due_to_subgroups.iter().map(|(found, _)| found));
        let of_share = choice.race_of_small_share().map(|race| &race.found);
        report.open_findings = open.chain(of_share).cloned().collect();
        let mut options = first.clone();
        // The choice to report is the first one with a certain finding.
        if let Some(shown) = shown_by.and_then(|index| others.get(index)) {
            options = shown.options.clone();
            (report.grid, report.local_size) = (shown.report.grid, shown.report.local_size);
            report.finding_schedule = shown.report.finding_schedule;
            report.workgroups.clone_from(&shown.report.workgroups);
        } else if let Some(shown) =
            open_shown_by.filter(|_| certain.is_empty()).and_then(|index| others.get(index))
        {
            options = shown.options.clone();
        }
        let reached = std::mem::take(&mut report.reached);
        let is_decided = report.model.is_some() && choice.has_ordinary_counters(&first);
        report.blocked.retain(|blocked| {
            !(blocked.is_covered(&reached) || is_decided && choice.decides_by_counters(blocked))
        });
        let alone = choice.reached_by_one();
        if let Some(lines) = line_ranges(module, &alone.iter().flat_map(|one| one.lines.clone()).collect()) {
            report.limits.push(CoverageLimit::Note(format!("one invocation alone reaches {lines}")));
        }
        let by_launch = choice.needed_launch(module, &reached);
        let is_settled = matches!(report.verdict, RaceVerdict::Clean | RaceVerdict::Racy);
        let (by_contents, of_contents) = choice.contents_that_decide_races();
        let is_decided = !dependent.is_empty() || is_settled && !by_contents.is_empty();
        let needs_grid = report.verdict == RaceVerdict::Clean && report.two_workgroup_finding.is_some();
        if !certain.is_empty() {
            report.verdict = RaceVerdict::Racy;
        } else if is_decided
            || is_settled && !(report.blocked.is_empty() && alone.is_empty() && by_launch.is_empty())
        {
            report.verdict = RaceVerdict::NeedsInputs;
            let depends = !dependent.is_empty();
            let mut listed = Vec::new();
            for (found, shown) in &dependent {
                let key = (found.finding_key(), &found.message);
                if listed.contains(&key) || listed.len() == MAX_LISTED {
                    continue;
                }
                listed.push(key);
                let needs = needed_inputs(module, shown, &[], &choice.inputs_of(found), true);
                report.needs.extend(needs.into_iter().map(|needed| needed.with_finding(found)));
            }
            if let (Some((found, shown)), false) = (of_contents, depends) {
                let needs = needed_inputs(module, &shown, &[], &by_contents, false);
                report.needs.extend(needs.into_iter().map(|needed| needed.with_finding(&found)));
            }
            report.needs.extend(needed_inputs(module, &first, &report.blocked, &[], false));
            for mut needed in needed_inputs(module, &first, &alone, &[], false) {
                needed.lines += " by a second invocation";
                report.needs.push(needed);
            }
            report.needs.extend(by_launch);
            if report.needs.is_empty() {
                let found = dependent.first().map(|(found, _)| found);
                report.needs = chosen_constants(module, given, &first, found);
            }
        } else if let (true, Some(race)) = (is_settled, choice.race_of_small_share()) {
            report.verdict = RaceVerdict::NeedsInputs;
            report.is_open_by_share = true;
            let needs = needed_inputs(module, &race.options, &[], &race.inputs, false);
            report.needs.extend(needs.into_iter().map(|needed| needed.with_finding(&race.found)));
        } else if needs_grid || !due_to_grid.is_empty() || !due_to_subgroups.is_empty() {
            report.verdict = RaceVerdict::NeedsInputs;
        }
        if certain.is_empty() {
            if let Some((found, Some(grid))) = due_to_grid.first() {
                let wider = found.with_wider_grid(format!("--grid {grid}"));
                report.two_workgroup_finding = Some(wider);
                // Counts that grew with the grid decide it too.
                let is_changed = |input: &AssumedInput| {
                    input.is_number() && input.describe_value(&options) != input.describe_value(&first)
                };
                let counts = (0..first.assumed.len()).filter(|at| is_changed(&first.assumed[*at]));
                let needs = needed_inputs(module, &options, &[], &counts.collect::<Vec<_>>(), false);
                report.needs.extend(needs.into_iter().map(|needed| needed.with_finding(found)));
                report.needs.push(NeededInput::grid_for_finding(grid.clone()).with_finding(found));
            }
            if let Some((found, size)) = due_to_subgroups.first() {
                report
                    .needs
                    .push(NeededInput::subgroup_size_for_finding(size.to_string()).with_finding(found));
            }
        }
        let is_open = matches!(report.verdict, RaceVerdict::Clean | RaceVerdict::NeedsInputs);
        if certain.is_empty() && is_open && !report.exceeded.is_empty() {
            report.verdict = RaceVerdict::NeedsInputs;
            report.needs.extend(needed_sizes(&first, &report.exceeded));
        }
        if needs_grid && due_to_grid.is_empty() && report.verdict == RaceVerdict::NeedsInputs {
            let missing = NeededInput::missing_grid(report.stage);
            let wider = report.two_workgroup_finding.as_ref();
            report.needs.extend(wider.map(|wider| missing.with_finding(&wider.finding)));
        }
        // More time may find inputs that reach these lines.
        let needs_time = |report: &GridReport| report.needs.iter().all(|need| need.finding.is_none());
        if choice.is_cut_off && report.verdict == RaceVerdict::NeedsInputs && needs_time(&report) {
            report.verdict = RaceVerdict::Undecided;
            report.needs.clear();
            report.refusal = Some(Problem::OutOfTime.located_at(SourcePosition::Module));
        }
        check_barriers(module, &first, choice, &mut report);
        note_waiting(module, &first, &mut report);
        if report.verdict != RaceVerdict::Clean {
            report.order_dependent_element = None;
        } else if choice.is_launch_search_cut_off() {
            report.limits.push(CoverageLimit::GridSearchCutOff);
        }
        // The inputs that show the first certain finding come first.
        let shown = if certain.is_empty() { &first } else { &options };
        report.chosen_inputs = vec![list_choice(given, shown, &choice.deciding_inputs())];
        let others = others.iter().map(|other| &other.options);
        for other in std::iter::once(&first).chain(others) {
            let is_changed = |input: &&AssumedInput| {
                !matches!(input.place, InputPlace::Constant(_))
                    && input.describe_value(other) != input.describe_value(shown)
            };
            let values = other.assumed.iter().filter(is_changed);
            let values = values.map(|input| format!("{} = {}", input.name, input.describe_value(other)));
            report.chosen_inputs.push(describe_launch(shown, other).into_iter().chain(values).collect());
        }
        report.findings = certain;
        // A further choice that differs in nothing that is listed adds nothing.
        let mut listed: Vec<Vec<String>> = Vec::new();
        report.chosen_inputs.retain(|inputs| {
            let is_new = listed.is_empty() || !inputs.is_empty() && !listed.contains(inputs);
            listed.push(inputs.clone());
            is_new
        });
        if report.chosen_inputs.iter().all(Vec::is_empty) {
            report.chosen_inputs.clear();
        }
        InputChoiceReport {
            // The first of them is the choice to report.
            further_options: showing.into_iter().skip(1).collect(),
            reached_by_equality: choice.reached_by_equality(),
            ..InputChoiceReport::new(report, options)
        }
    }
}

/// Returns the grid of a finding, with the workgroups that take part in it if not all of the grid run.
fn describe_grid(options: &AnalysisOptions, found: &GridFinding) -> Option<String> {
    let [x, y, z] = options.grid?;
    let mut running: Vec<[u32; 3]> = found.at.iter().map(|spot| spot.invocation.workgroup).collect();
    running.sort_unstable();
    running.dedup();
    running.retain(|_| !options.workgroups.is_empty());
    let running = running.into_iter().map(|[x, y, z]| format!(" --workgroup {x},{y},{z}"));
    Some(format!("{x},{y},{z}{}", running.collect::<String>()))
}

/// Removes and returns the accesses that are within bounds in one workgroup, unless the grid is given.
fn take_due_to_wide_grid(
    module: &SpirvModule,
    chosen: &AnalysisOptions,
    choice: &InputChoice,
    findings: &mut Vec<GridFinding>,
) -> Vec<GridFinding> {
    if !findings.iter().any(|found| choice.may_exceed_by_grid(found, chosen)) {
        return Vec::new();
    }
    let one_workgroup = AnalysisOptions { grid: Some([1; 3]), workgroups: Vec::new(), ..chosen.clone() };
    let Ok(report) = walk::analyze_grid(module, &one_workgroup) else { return Vec::new() };
    let is_complete = matches!(report.verdict, RaceVerdict::Clean | RaceVerdict::Racy);
    let is_due = |found: &GridFinding| {
        let mut blocks = found.blocks.iter();
        is_complete
            && choice.may_exceed_by_grid(found, chosen)
            && blocks.all(|block| report.reached.get(*block as usize) == Some(&true))
            && !report.findings.iter().any(|other| other.finding_key() == found.finding_key())
    };
    let (due, stay) = std::mem::take(findings).into_iter().partition(is_due);
    *findings = stay;
    due
}

/// Removes and returns the findings that another common subgroup size does not have, unless the size is given.
fn take_due_to_subgroup_size(
    module: &SpirvModule,
    (given, chosen): (&AnalysisOptions, &AnalysisOptions),
    report: &GridReport,
    findings: &mut Vec<GridFinding>,
) -> Vec<GridFinding> {
    let mut removed = Vec::new();
    if given.subgroup_size == chosen.subgroup_size {
        return removed;
    }
    let invocations = report.local_size.iter().product();
    let is_other = |size: &u32| Some(*size) != chosen.subgroup_size && *size <= invocations;
    for size in given.likely_subgroup_sizes().iter().copied().filter(is_other) {
        if findings.is_empty() {
            break;
        }
        let other = AnalysisOptions { subgroup_size: Some(size), ..chosen.clone() };
        let Ok(report) = walk::analyze_grid(module, &other) else { continue };
        if matches!(report.verdict, RaceVerdict::Clean | RaceVerdict::Racy) {
            let remains = |found: &GridFinding| {
                report.findings.iter().any(|other| other.finding_key() == found.finding_key())
            };
            let (stay, gone) = std::mem::take(findings).into_iter().partition(remains);
            *findings = stay;
            removed.extend::<Vec<_>>(gone);
        }
    }
    removed
}

/// Analyzes a kernel for one choice; with two workgroups if it uses no position in the grid and they are clean too.
fn decide_widened(
    module: &SpirvModule,
    options: AnalysisOptions,
    choice: &InputChoice,
    model: &Model,
    budget: Budget<'_>,
) -> Result<InputChoiceReport, Refusal> {
    let (report, options) = decide_with_sizes(module, options, model, budget)?;
    let is_racy_in_two = report.two_workgroup_finding.is_some();
    let may_widen =
        if is_racy_in_two { waits_alone(module, &options, &report) } else { choice.may_widen(&options) };
    if report.verdict == RaceVerdict::Clean && may_widen {
        let widened = AnalysisOptions { grid: Some(wider_grid(report.stage).grid), ..options.clone() };
        if let Ok((wider, widened)) = decide_with_sizes(module, widened, model, budget)
            && wider.verdict == if is_racy_in_two { RaceVerdict::Racy } else { RaceVerdict::Clean }
        {
            return Ok(InputChoiceReport::new(wider, widened));
        }
    }
    Ok(InputChoiceReport::new(report, options))
}

/// Returns true if the only invocation waits for another one, so the grid has more than one workgroup.
fn waits_alone(module: &SpirvModule, options: &AnalysisOptions, report: &GridReport) -> bool {
    let entry = module.find_entry(options.entry.as_deref());
    report.grid == [1; 3]
        && report.local_size == [1; 3]
        && entry.is_ok_and(|entry| !awaited_atomics(module, entry.function).is_empty())
}

/// Analyzes a kernel, again with larger buffers and images as long as accesses lie beyond their assumed sizes.
fn decide_with_sizes(
    module: &SpirvModule,
    mut options: AnalysisOptions,
    model: &Model,
    budget: Budget<'_>,
) -> Result<(GridReport, AnalysisOptions), Refusal> {
    let mut report = decide_for_sizes(module, &options, model, budget)?;
    for _ in 0..MAX_SIZE_ROUNDS {
        let Some(larger) = with_larger_sizes(&options, &report.exceeded) else { break };
        match decide_for_sizes(module, &larger, model, budget) {
            // Loops over larger buffers may exceed a limit.
            Ok(again) if again.verdict != RaceVerdict::Undecided => (report, options) = (again, larger),
            _ => break,
        }
    }
    Ok((report, options))
}

/// Repeats the walk with two workgroups if neither an option nor an annotation gives the grid, and describes the
/// first finding.
///
/// A single workgroup shares memory with no other. A shader in which every workgroup does the same is written for one.
/// For graphics stages these are two vertices, or two fragments of each of two pixels.
fn find_with_two_workgroups(module: &SpirvModule, options: &AnalysisOptions) -> Option<WiderGridFinding> {
    if options.grid.is_some() || module.annotations.config.is_some() {
        return None;
    }
    let stage = module.find_entry(options.entry.as_deref()).ok()?.shader_stage();
    if is_for_one_workgroup(module, options, stage) {
        return None;
    }
    let wider = wider_grid(stage);
    let report =
        walk::analyze_grid(module, &AnalysisOptions { grid: Some(wider.grid), ..options.clone() }).ok()?;
    // A stride or a given buffer that is suitable for one workgroup may not be for two.
    let is_due_to_size = |found: &GridFinding| {
        found.kind == FindingKind::OutOfBounds && !(options.buffers.is_empty() && options.images.is_empty())
    };
    // A workgroup that takes its position from a counter depends on its start.
    let is_certain = |found: &GridFinding| {
        found.inputs.is_empty() || found.kind.is_race() && are_zero_counters(module, options, &found.inputs)
    };
    let found = report.findings.iter().find(|found| is_certain(found) && !is_due_to_size(found))?;
    Some(found.with_wider_grid(wider.description.to_owned()))
}

/// Returns true if the grid is not given, and further workgroups would repeat what the first one does.
fn is_for_one_workgroup(module: &SpirvModule, options: &AnalysisOptions, stage: Stage) -> bool {
    let is_given = options.grid.is_some() || module.annotations.config.is_some();
    !is_given && stage.has_workgroups() && repeats_in_each_workgroup(module)
}

fn decide_by_walk_and_model(
    module: &SpirvModule,
    options: &AnalysisOptions,
    model: &Model,
    budget: Budget<'_>,
) -> Result<GridReport, Refusal> {
    let walk_result = walk::analyze_grid_thoroughly(module, options);
    match &walk_result {
        Ok(report)
            if report.verdict == RaceVerdict::Racy
                || report.verdict == RaceVerdict::Clean && !report.is_schedule_dependent =>
        {
            return walk_result;
        }
        // The model has no schedules.
        _ if options.replay.is_some() => return walk_result,
        // Inputs that do not fit the kernel are an error for the model too.
        Err(Refusal { what: Problem::Input(_), .. }) => return walk_result,
        _ => {}
    }
    let Ok(lifted) = lift(module, options) else { return walk_result };
    let query = ModelQuery { budget, decide_race: true, decide_question: false, locate_race: true };
    let Ok(answer) = answer_with_model(&lifted, model, &query) else { return walk_result };
    // A race of the model may be a collision that the language defines; the walk tells them apart.
    if module.defines_collisions() && answer.race == Race::Racy && answer.findings.is_empty() {
        return walk_result;
    }
    let mut findings: Vec<GridFinding> = answer
        .findings
        .iter()
        .map(|found| GridFinding {
            element: found.element.clone(),
            ..GridFinding::from_spots(&lifted.invocations, found.cause, found.message.clone(), &found.at)
        })
        .collect();
    if let Some(found) = &answer.race_spot {
        let message = found.describe(&lifted.invocations);
        findings.push(GridFinding {
            element: found.element.clone(),
            ..GridFinding::from_spots(&lifted.invocations, FindingCause::Unordered, message, &found.at)
        });
    } else if answer.race == Race::Racy {
        let message = "data race at an unknown place".to_owned();
        findings.push(GridFinding::new(FindingCause::Unordered, message, Vec::new()));
    }
    // No exchange of the model fails although the values are equal.
    let complete = answer.race == Race::Free && !lifted.is_sampled && !module.has_weak_exchanges();
    // The model has not covered every execution either, so its silence proves no more than the
    // walk.
    if findings.is_empty() && !complete {
        return walk_result;
    }
    let verdict = if findings.is_empty() { RaceVerdict::Clean } else { RaceVerdict::Racy };
    let entry = lifted.entry.clone();
    let mut report = match walk_result {
        Ok(report) => report,
        Err(_) => GridReport::unwalked(entry, &lifted.invocations, lifted.subgroup_size),
    };
    // The model has decided every schedule, so the limits of the walk no longer matter.
    (report.verdict, report.findings, report.refusal, report.is_schedule_dependent) =
        (verdict, findings, None, false);
    report.limits.clear();
    report.exceeded.clear();
    report.finding_schedule = None;
    report.model = Some(DecidingModel {
        name: model.name().to_owned(),
        invocations: lifted.invocations.len(),
        executions: answer.consistent_executions,
    });
    Ok(report)
}
