//! Text output of the `codegen` command.

use std::collections::BTreeMap;

use super::code;
use crate::wire::{
    CodegenDiffLine, CodegenDiffVerdict, CodegenEditLine, CodegenExploreLine, CodegenExploreVerdict,
    CodegenKernel, CodegenLine, CodegenOrder, CodegenOrderVerdict, CodegenOrdered, CodegenVerdict,
};

/// The part of a kernel to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodegenView {
    /// Its machine code, next to the test's instructions.
    Code,
    /// The driver's intermediate representations.
    Forms,
    /// The implementation of each memory order.
    Orders,
}

/// Totals over the tests of one device.
#[derive(Clone, Debug, Default)]
pub struct CodegenTotals {
    device: String,
    tests: usize,
    compiled: usize,
    crashed: usize,
    skipped: usize,
    not_disassembled: usize,
    micros: Vec<u64>,
    /// Number of skipped tests by reason.
    reasons: BTreeMap<String, usize>,
    /// Number of orders by form and verdict on their machine code.
    orders: BTreeMap<String, BTreeMap<CodegenOrderVerdict, usize>>,
}

impl CodegenTotals {
    /// Creates empty totals.
    pub fn new(device: &str) -> CodegenTotals {
        CodegenTotals { device: device.to_owned(), ..CodegenTotals::default() }
    }

    /// Adds a line.
    pub fn add(&mut self, line: &CodegenLine) {
        self.tests += usize::from(line.verdict != CodegenVerdict::Skipped);
        self.skipped += usize::from(line.verdict == CodegenVerdict::Skipped);
        if let Some(reason) = line.reason.as_ref().filter(|_| line.verdict == CodegenVerdict::Skipped) {
            *self.reasons.entry(reason.clone()).or_default() += 1;
        }
        for kernel in &line.kernels {
            match kernel.verdict {
                CodegenVerdict::Compiles => self.compiled += 1,
                CodegenVerdict::Crashes => self.crashed += 1,
                CodegenVerdict::Skipped => {}
            }
            self.not_disassembled += usize::from(kernel.not_disassembled.is_some());
            self.micros.extend(kernel.micros);
            for order in &kernel.orders {
                *self
                    .orders
                    .entry(kernel.form.clone())
                    .or_default()
                    .entry(order.code.verdict)
                    .or_default() += 1;
            }
        }
    }

    /// Returns the compile time in milliseconds at a `quantile` of all kernels.
    fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.micros.clone();
        sorted.sort_unstable();
        let index = (sorted.len() as f64 * part) as usize;
        sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default() as f64 / 1000.0
    }
}

/// Formats tests. A test that compiles prints nothing unless `view` requests its code.
pub fn format_tests(lines: &[CodegenLine], view: Option<CodegenView>) -> String {
    lines.iter().map(|line| format_test(line, view)).collect()
}

fn format_test(line: &CodegenLine, view: Option<CodegenView>) -> String {
    let mut text = String::new();
    match line.verdict {
        CodegenVerdict::Crashes => {
            let reason = line.reason.as_deref().unwrap_or_default();
            text += &format!("crashes   {} on {}: {reason}\n", line.id, line.device);
            for kernel in line.kernels.iter().filter(|kernel| kernel.verdict == CodegenVerdict::Crashes) {
                let how = kernel.reason.as_deref().unwrap_or_default();
                text += &format!("          {} {}: {how}\n", kernel.form, kernel.kernel);
            }
            if let Some(reduced) = &line.reduced {
                text += "          the smallest test on which it does:\n";
                for line in reduced.lines() {
                    text += &format!("            {line}\n");
                }
            }
            text += &format!("          {}\n", line.replay);
        }
        CodegenVerdict::Skipped if view.is_some() => {
            let reason = line.reason.as_deref().unwrap_or_default();
            text += &format!("skipped   {} on {}: {reason}\n", line.id, line.device);
        }
        CodegenVerdict::Compiles | CodegenVerdict::Skipped => {}
    }
    if view.is_some() {
        // With `Shown::Orders`, a kernel without an order prints nothing.
        let has_output = |kernel: &&CodegenKernel| {
            let is_silent = view == Some(CodegenView::Orders) && kernel.orders.is_empty();
            kernel.verdict == CodegenVerdict::Compiles && !is_silent
        };
        for kernel in line.kernels.iter().filter(has_output) {
            text += &format_kernel(line, kernel, view);
        }
    }
    text
}

/// Formats crashes and lost orders only.
pub fn format_failures(lines: &[CodegenLine]) -> String {
    let mut text = format_tests(lines, None);
    for line in lines {
        for kernel in &line.kernels {
            let is_lost = |order: &&CodegenOrder| order.code.verdict == CodegenOrderVerdict::Lost;
            let lost: Vec<CodegenOrder> = kernel.orders.iter().filter(is_lost).cloned().collect();
            if !lost.is_empty() {
                let kernel = CodegenKernel { orders: lost, ..kernel.clone() };
                text += &format_kernel(line, &kernel, Some(CodegenView::Orders));
            }
        }
    }
    text
}

/// Formats the totals of devices as a table.
pub fn format_totals(figures: &[CodegenTotals]) -> String {
    let header = ["device", "tests", "skipped", "kernels", "crashes", "no text", "median ms", "95 % ms"];
    let rows = figures.iter().map(|one| {
        vec![
            one.device.clone(),
            one.tests.to_string(),
            one.skipped.to_string(),
            one.compiled.to_string(),
            one.crashed.to_string(),
            one.not_disassembled.to_string(),
            format!("{:.2}", one.quantile(0.5)),
            format!("{:.2}", one.quantile(0.95)),
        ]
    });
    // Group by reason: devices mostly skip the same tests for the same reason.
    let mut reasons: BTreeMap<(&str, usize), Vec<&str>> = BTreeMap::new();
    for one in figures {
        for (reason, count) in &one.reasons {
            reasons.entry((reason, *count)).or_default().push(&one.device);
        }
    }
    let mut text = String::new();
    for ((reason, count), devices) in reasons {
        let on = if devices.len() == figures.len() { "every device".to_owned() } else { devices.join(", ") };
        text += &format!("skipped   {count} tests on {on}: {reason}\n");
    }
    let header = header.iter().map(|word| (*word).to_owned()).collect();
    text + &align_columns(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
        + &format_order_counts(figures)
}

/// Formats the number of orders for each verdict, by device and form.
fn format_order_counts(figures: &[CodegenTotals]) -> String {
    const VERDICTS: [CodegenOrderVerdict; 6] = [
        CodegenOrderVerdict::Kept,
        CodegenOrderVerdict::Weakened,
        CodegenOrderVerdict::Lost,
        CodegenOrderVerdict::Unknown,
        CodegenOrderVerdict::NotCovered,
        CodegenOrderVerdict::Stronger,
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for one in figures {
        for (form, orders) in &one.orders {
            let counts = VERDICTS.iter().map(|verdict| orders.get(verdict).unwrap_or(&0).to_string());
            rows.push([one.device.clone(), form.clone()].into_iter().chain(counts).collect());
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let words = VERDICTS.iter().map(|verdict| verdict.name());
    let header = ["device", "form"].into_iter().chain(words).map(str::to_owned).collect();
    rows.insert(0, header);
    format!("\nrequired orders, and stronger ones that none requires\n{}", align_columns(&rows))
}

/// Formats results of the explorer. Unreachable outcomes print nothing; a reachable one prints only its first
/// profile.
pub fn format_explored(lines: &[CodegenExploreLine]) -> String {
    let mut text = String::new();
    let mut reached = None;
    for line in lines {
        if line.verdict == CodegenExploreVerdict::Reachable {
            let key = (&line.id, &line.device, &line.form);
            if reached.replace(key) == Some(key) {
                continue;
            }
        }
        text += &format_explored_line(line);
    }
    text
}

fn format_explored_line(line: &CodegenExploreLine) -> String {
    let is_printed = match line.verdict {
        CodegenExploreVerdict::Reachable | CodegenExploreVerdict::Hazard => true,
        CodegenExploreVerdict::Unsupported => !line.profile.is_empty(),
        CodegenExploreVerdict::Unreachable | CodegenExploreVerdict::Skipped => false,
    };
    if !is_printed {
        return String::new();
    }
    let mut text = format!(
        "{} {} on {}, {}, profile {}",
        line.verdict.name(),
        line.id,
        line.device,
        line.form,
        line.profile
    );
    if let Some(detail) = &line.detail {
        text += &format!(": {detail}");
    }
    text.push('\n');
    if let Some(witness) = &line.witness {
        text += &format!(
            "    outcome {:?}; compute units {:?}, shader arrays {:?}\n",
            witness.outcome, witness.units, witness.arrays
        );
        let width = witness.steps.iter().map(|step| step.code.len()).max().unwrap_or(0);
        for step in &witness.steps {
            text += &format!(
                "    workgroup {} wave {} ({})  {:width$}  {}\n",
                step.workgroup, step.wave, step.kernel, step.code, step.effect
            );
        }
        text += &format!(
            "    rests on {}\n    {}\n    {}\n",
            line.assumptions.join(", "),
            line.note,
            line.replay
        );
    }
    text
}

/// Formats the number of each result by device, form and profile.
pub fn format_explore_table(lines: &[CodegenExploreLine]) -> String {
    let verdicts = CodegenExploreVerdict::ALL;
    let mut counts: BTreeMap<(&str, &str, &str), [usize; 5]> = BTreeMap::new();
    for line in lines {
        let row = counts.entry((&line.device, &line.form, &line.profile)).or_default();
        for (cell, verdict) in row.iter_mut().zip(verdicts) {
            *cell += usize::from(line.verdict == verdict);
        }
    }
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.profile.is_empty()) {
        let reason = line.detail.as_deref().unwrap_or_default();
        *reasons.entry((line.verdict.name(), reason)).or_default() += 1;
    }
    let format_reason = |((verdict, reason), count)| format!("{verdict} {count}: {reason}\n");
    let text: String = reasons.into_iter().map(format_reason).collect();
    let header = ["device", "form", "profile"]
        .into_iter()
        .chain(verdicts.map(CodegenExploreVerdict::name))
        .map(str::to_owned);
    let mut rows: Vec<Vec<String>> = vec![header.collect()];
    for ((device, form, profile), cells) in counts {
        let mut row: Vec<String> = [device, form, profile].map(str::to_owned).to_vec();
        row.extend(cells.map(|count| count.to_string()));
        rows.push(row);
    }
    text + &align_columns(&rows)
}

/// Formats mutations of machine code that survive without an explanation.
pub fn format_surviving_edits(lines: &[CodegenEditLine]) -> String {
    let is_unexplained = |line: &&CodegenEditLine| {
        line.fate.starts_with("survives: unexplained") || line.fate.starts_with("survives: forbidden")
    };
    let format_edit = |line: &CodegenEditLine| {
        let CodegenEditLine { fate, id, device, form, edit, code, .. } = line;
        format!("{fate}, {id} on {device}, {form}: {edit}, {code}\n")
    };
    lines.iter().filter(is_unexplained).map(format_edit).collect()
}

/// Formats a table of mutations by device: detected and total, then their results.
pub fn format_edit_table(lines: &[CodegenEditLine]) -> String {
    let mut by_kind: BTreeMap<(&str, &str), Vec<&CodegenEditLine>> = BTreeMap::new();
    for line in lines {
        by_kind.entry((&line.device, &line.edit)).or_default().push(line);
    }
    let mut rows = vec![["device", "edit", "caught", "result"].map(str::to_owned).to_vec()];
    for ((device, edit), lines) in by_kind {
        let caught = lines.iter().filter(|line| line.caught).count();
        let mut fates: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &lines {
            *fates.entry(&line.fate).or_default() += 1;
        }
        let fates: Vec<String> = fates.iter().map(|(fate, count)| format!("{fate} {count}")).collect();
        let share = format!("{caught}/{}", lines.len());
        rows.push(vec![device.to_owned(), edit.to_owned(), share, fates.join(", ")]);
    }
    align_columns(&rows)
}

/// Formats relaxations without an effect on the code although the model needs the relaxed operation.
pub fn format_ineffective(lines: &[CodegenDiffLine]) -> String {
    let is_ineffective =
        |line: &&CodegenDiffLine| line.verdict == CodegenDiffVerdict::NoEffect && line.needed == Some(true);
    let format_relaxation = |line: &CodegenDiffLine| {
        format!("no-effect {} on {}, {}: {}\n", line.id, line.device, line.form, line.step)
    };
    lines.iter().filter(is_ineffective).map(format_relaxation).collect()
}

/// Formats a table of shapes and relaxations by device: `differing / all`.
pub fn format_diff_table(lines: &[CodegenDiffLine]) -> String {
    let mut devices: Vec<&str> = Vec::new();
    let mut cells: BTreeMap<(&str, &str, &str), CountsByDevice<'_>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.verdict != CodegenDiffVerdict::Skipped) {
        if !devices.contains(&line.device.as_str()) {
            devices.push(&line.device);
        }
        let needed = if line.needed == Some(false) { "needless" } else { "needed" };
        let relaxation = line.relaxation.as_str();
        for key in
            [(needed, line.shape.as_str(), relaxation), (needed, "all", relaxation), (needed, "all", "")]
        {
            let cell = cells.entry(key).or_default().entry(&line.device).or_default();
            cell.0 += usize::from(line.verdict == CodegenDiffVerdict::Differs);
            cell.1 += 1;
        }
    }
    let mut rows: Vec<Vec<String>> = vec![
        ["by the model", "shape", "relaxation"]
            .into_iter()
            .chain(devices.iter().copied())
            .map(str::to_owned)
            .collect(),
    ];
    for ((needed, shape, relaxation), by_device) in &cells {
        let mut row = vec![(*needed).to_owned(), (*shape).to_owned(), (*relaxation).to_owned()];
        for device in &devices {
            let (differing, all) = by_device.get(device).copied().unwrap_or_default();
            row.push(if all == 0 { "-".to_owned() } else { format!("{differing}/{all}") });
        }
        rows.push(row);
    }
    format!("\nrelaxations that change accesses, waits or barriers / all\n{}", align_columns(&rows))
}

/// Number of relaxations that change the code, and of all, by device.
type CountsByDevice<'a> = BTreeMap<&'a str, (usize, usize)>;

/// Formats a kernel with its heading.
fn format_kernel(line: &CodegenLine, kernel: &CodegenKernel, view: Option<CodegenView>) -> String {
    let instructions =
        kernel.instructions.map_or_else(String::new, |count| format!(", {count} instructions"));
    let mut text = format!(
        "\n{} on {} ({}), {}, {} ({}){instructions}\n",
        line.id, line.device, line.driver, kernel.form, kernel.kernel, kernel.role
    );
    if let Some(form) = &kernel.rewritten_form {
        text += &format!("  {form}\n");
    }
    if view == Some(CodegenView::Forms) {
        if let Some(why) = &kernel.not_disassembled {
            text += &format!("  {why}\n");
        }
        for form in &kernel.forms {
            text += &format!("--- {}\n{}\n", form.name, form.text.trim_end());
        }
        return text;
    }
    if view == Some(CodegenView::Orders) {
        return text + &format_orders(kernel);
    }
    text + &code::format_kernel(kernel)
}

/// Pads each column to its widest cell.
fn align_columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Formats the orders of a kernel, one per line.
fn format_orders(kernel: &CodegenKernel) -> String {
    let mut text = String::new();
    for order in &kernel.orders {
        let CodegenOrder { first, second, code, nir, scope, .. } = order;
        text += &format!(
            "  {:9} {} at {scope}: {first} -> {second}: {}\n",
            order_word(code),
            order.order,
            code.why
        );
        if let Some(nir) = nir {
            text += &format!("            in NIR {}: {}\n", nir.verdict.name(), nir.why);
        }
    }
    text
}

/// The published words of an order in code.
fn order_word(code: &CodegenOrdered) -> &'static str {
    if code.is_merged { "lost (merged)" } else { code.verdict.name() }
}

/// Formats the compiled threads of one test.
pub fn format_threads(line: &CodegenLine) -> String {
    let why = line.reason.as_deref().unwrap_or_default();
    match line.verdict {
        CodegenVerdict::Compiles => {
            line.kernels.iter().map(|kernel| format_kernel(line, kernel, Some(CodegenView::Code))).collect()
        }
        CodegenVerdict::Skipped => format!("\nno machine code on {}: skipped: {why}\n", line.device),
        CodegenVerdict::Crashes => {
            format!("\nno machine code on {}: its compiler crashes: {why}\n", line.device)
        }
    }
}
