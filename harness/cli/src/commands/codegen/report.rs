//! What `codegen` prints.

use std::collections::BTreeMap;

use results::wire::{
    CodegenDiffLine, CodegenDiffVerdict, CodegenEditLine, CodegenExploreLine, CodegenExploreVerdict,
    CodegenKernel, CodegenLine, CodegenOrderVerdict, CodegenVerdict,
};

use results::write::{code, matrix};

use crate::arguments::{CodegenEmit, CodegenFormat};
use crate::exit::Failure;
use crate::output::Data;

use super::orders;

/// Prints lines as they come, and tables at the end.
pub struct Printer {
    data: Data,
    format: CodegenFormat,
    /// What a page will be made of.
    lines: Vec<CodegenLine>,
    /// The last test, device and form whose outcome is reachable: what is reachable with fewer assumptions is no news.
    reached: Option<(String, String, String)>,
}

/// Sums of the lines of a device.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    device: String,
    tests: usize,
    compiled: usize,
    crashed: usize,
    skipped: usize,
    not_disassembled: usize,
    micros: Vec<u64>,
    /// What tests are skipped for, with their number.
    reasons: BTreeMap<String, usize>,
    /// What became of orders in machine code, by form.
    orders: BTreeMap<String, BTreeMap<CodegenOrderVerdict, usize>>,
}

impl Figures {
    /// None yet.
    pub fn new(device: &str) -> Figures {
        Figures { device: device.to_owned(), ..Figures::default() }
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

    /// The time that a part of the kernels took at most, in milliseconds.
    fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.micros.clone();
        sorted.sort_unstable();
        let index = (sorted.len() as f64 * part) as usize;
        sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default() as f64 / 1000.0
    }
}

impl Printer {
    /// One for standard output.
    pub fn new(format: CodegenFormat) -> Printer {
        Printer { data: Data::new(), format, lines: Vec::new(), reached: None }
    }

    fn is_json(&self) -> bool {
        self.format == CodegenFormat::Json
    }

    fn json(&mut self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(value).map_err(Failure::environment_error)?;
        self.data.print(&format!("{line}\n"))
    }

    /// Prints a text, where the output is one.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        if self.format == CodegenFormat::Text { self.data.print(text) } else { Ok(()) }
    }

    /// Prints the line of a test. As text, what is as it should be has none, unless its code is asked for.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub fn line(&mut self, line: &CodegenLine, emit: Option<CodegenEmit>) -> Result<(), Failure> {
        match self.format {
            CodegenFormat::Text => {}
            CodegenFormat::Json => return self.json(line),
            CodegenFormat::Html => {
                self.lines.push(line.clone());
                return Ok(());
            }
        }
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
            CodegenVerdict::Skipped if emit.is_some() => {
                let reason = line.reason.as_deref().unwrap_or_default();
                text += &format!("skipped   {} on {}: {reason}\n", line.id, line.device);
            }
            CodegenVerdict::Compiles | CodegenVerdict::Skipped => {}
        }
        if emit.is_some() {
            // A kernel in which nothing is ordered has nothing to say of it.
            let says = |kernel: &&CodegenKernel| {
                let is_silent = emit == Some(CodegenEmit::Order) && kernel.orders.is_empty();
                kernel.verdict == CodegenVerdict::Compiles && !is_silent
            };
            for kernel in line.kernels.iter().filter(says) {
                text += &kernel_text(line, kernel, emit);
            }
        }
        self.data.print(&text)
    }

    /// Prints the sums of devices.
    ///
    /// # Errors
    /// When they cannot be printed.
    pub fn figures(&mut self, figures: &[Figures]) -> Result<(), Failure> {
        match self.format {
            CodegenFormat::Text => {}
            CodegenFormat::Json => return Ok(()),
            CodegenFormat::Html => return self.data.print(&matrix::page(&self.lines)),
        }
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
        // Devices mostly skip the same tests for the same reason.
        let mut reasons: BTreeMap<(&str, usize), Vec<&str>> = BTreeMap::new();
        for one in figures {
            for (reason, count) in &one.reasons {
                reasons.entry((reason, *count)).or_default().push(&one.device);
            }
        }
        let mut text = String::new();
        for ((reason, count), devices) in reasons {
            let on =
                if devices.len() == figures.len() { "every device".to_owned() } else { devices.join(", ") };
            text += &format!("skipped   {count} tests on {on}: {reason}\n");
        }
        self.data.print(&text)?;
        let header = header.iter().map(|word| (*word).to_owned()).collect();
        self.data.print(&columns(&std::iter::once(header).chain(rows).collect::<Vec<_>>()))?;
        self.orders(figures)
    }

    /// Prints how many orders are kept, weakened, lost and unknown, by device and form.
    fn orders(&mut self, figures: &[Figures]) -> Result<(), Failure> {
        const VERDICTS: [CodegenOrderVerdict; 4] = [
            CodegenOrderVerdict::Kept,
            CodegenOrderVerdict::Weakened,
            CodegenOrderVerdict::Lost,
            CodegenOrderVerdict::Unknown,
        ];
        let mut rows: Vec<Vec<String>> = Vec::new();
        for one in figures {
            for (form, orders) in &one.orders {
                let counts = VERDICTS.iter().map(|verdict| orders.get(verdict).unwrap_or(&0).to_string());
                rows.push([one.device.clone(), form.clone()].into_iter().chain(counts).collect());
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let words = VERDICTS.iter().map(|verdict| orders::word(*verdict));
        let header = ["device", "form"].into_iter().chain(words).map(str::to_owned).collect();
        rows.insert(0, header);
        self.data.print("\norders that tests ask for\n")?;
        self.data.print(&columns(&rows))
    }

    /// Prints an answer of the explorer. As text, what is unreachable has no line.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub fn explore_line(&mut self, line: &CodegenExploreLine) -> Result<(), Failure> {
        if self.is_json() {
            return self.json(line);
        }
        let told = match line.verdict {
            CodegenExploreVerdict::Reachable | CodegenExploreVerdict::Hazard => true,
            CodegenExploreVerdict::Unsupported => !line.profile.is_empty(),
            CodegenExploreVerdict::Unreachable | CodegenExploreVerdict::Skipped => false,
        };
        if !told {
            return Ok(());
        }
        if line.verdict == CodegenExploreVerdict::Reachable {
            let of = (line.id.clone(), line.device.clone(), line.form.clone());
            if self.reached.replace(of.clone()) == Some(of) {
                return Ok(());
            }
        }
        let mut text = format!(
            "{} {} on {}, {}, profile {}",
            verdict_word(line.verdict),
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
                    step.workgroup, step.wave, step.kernel, step.code, step.what
                );
            }
            text += &format!(
                "    rests on {}\n    {}\n    {}\n",
                line.assumptions.join(", "),
                line.note,
                line.replay
            );
        }
        self.data.print(&text)
    }

    /// Prints the number of each answer by device, form and profile.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub fn explore_table(&mut self, lines: &[CodegenExploreLine]) -> Result<(), Failure> {
        if self.is_json() {
            return Ok(());
        }
        let verdicts = [
            CodegenExploreVerdict::Unreachable,
            CodegenExploreVerdict::Reachable,
            CodegenExploreVerdict::Hazard,
            CodegenExploreVerdict::Unsupported,
            CodegenExploreVerdict::Skipped,
        ];
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
            *reasons.entry((verdict_word(line.verdict), reason)).or_default() += 1;
        }
        for ((verdict, reason), count) in reasons {
            self.data.print(&format!("{verdict} {count}: {reason}\n"))?;
        }
        let header =
            ["device", "form", "profile"].into_iter().chain(verdicts.map(verdict_word)).map(str::to_owned);
        let mut rows: Vec<Vec<String>> = vec![header.collect()];
        for ((device, form, profile), cells) in counts {
            let mut row: Vec<String> = [device, form, profile].map(str::to_owned).to_vec();
            row.extend(cells.map(|count| count.to_string()));
            rows.push(row);
        }
        self.data.print(&columns(&rows))
    }

    /// Prints what became of an edit. As text, only what is noticed by nothing and explained by nothing has a line.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub fn edit_line(&mut self, line: &CodegenEditLine) -> Result<(), Failure> {
        if self.is_json() {
            return self.json(line);
        }
        if line.fate.starts_with("survives: unexplained") || line.fate.starts_with("survives: forbidden") {
            let CodegenEditLine { fate, id, device, form, edit, code, .. } = line;
            return self.data.print(&format!("{fate}, {id} on {device}, {form}: {edit}, {code}\n"));
        }
        Ok(())
    }

    /// Prints the table of edits by device: caught and all, then what became of them.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub fn edit_table(&mut self, lines: &[CodegenEditLine]) -> Result<(), Failure> {
        if self.is_json() {
            return Ok(());
        }
        let mut of_kind: BTreeMap<(&str, &str), Vec<&CodegenEditLine>> = BTreeMap::new();
        for line in lines {
            of_kind.entry((&line.device, &line.edit)).or_default().push(line);
        }
        let mut rows = vec![["device", "edit", "caught", "what became of them"].map(str::to_owned).to_vec()];
        for ((device, edit), lines) in of_kind {
            let caught = lines.iter().filter(|line| line.caught).count();
            let mut fates: BTreeMap<&str, usize> = BTreeMap::new();
            for line in &lines {
                *fates.entry(&line.fate).or_default() += 1;
            }
            let fates: Vec<String> = fates.iter().map(|(fate, count)| format!("{fate} {count}")).collect();
            let share = format!("{caught}/{}", lines.len());
            rows.push(vec![device.to_owned(), edit.to_owned(), share, fates.join(", ")]);
        }
        self.data.print(&columns(&rows))
    }

    /// Prints what a relaxation changes. As text, only what needs to be looked at has a line: no effect, although the model
    /// needs what was relaxed.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub fn diff_line(&mut self, line: &CodegenDiffLine) -> Result<(), Failure> {
        if self.is_json() {
            return self.json(line);
        }
        if line.verdict == CodegenDiffVerdict::NoEffect && line.needed == Some(true) {
            let text = format!("no-effect {} on {}, {}: {}\n", line.id, line.device, line.form, line.step);
            return self.data.print(&text);
        }
        Ok(())
    }

    /// Prints the table: shapes and relaxations by devices, `differing / all` of those that the model needs.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub fn diff_table(&mut self, lines: &[CodegenDiffLine]) -> Result<(), Failure> {
        if self.is_json() {
            return Ok(());
        }
        let mut devices: Vec<&str> = Vec::new();
        let mut cells: BTreeMap<(&str, &str, &str), ByDevice<'_>> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.verdict != CodegenDiffVerdict::Skipped) {
            if !devices.contains(&line.device.as_str()) {
                devices.push(&line.device);
            }
            let needed = if line.needed == Some(false) { "needless" } else { "needed" };
            for key in [(needed, line.shape.as_str(), line.relaxation.as_str()), (needed, "all", "")] {
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
        self.data.print("\nrelaxations that change accesses, waits or barriers / all\n")?;
        self.data.print(&columns(&rows))
    }
}

fn verdict_word(verdict: CodegenExploreVerdict) -> &'static str {
    match verdict {
        CodegenExploreVerdict::Unreachable => "unreachable",
        CodegenExploreVerdict::Reachable => "reachable",
        CodegenExploreVerdict::Hazard => "hazard",
        CodegenExploreVerdict::Unsupported => "unsupported",
        CodegenExploreVerdict::Skipped => "skipped",
    }
}

/// Relaxations that change something, and all, by device.
type ByDevice<'a> = BTreeMap<&'a str, (usize, usize)>;

/// A kernel with its heading.
pub fn kernel_text(line: &CodegenLine, kernel: &CodegenKernel, emit: Option<CodegenEmit>) -> String {
    let instructions =
        kernel.instructions.map_or_else(String::new, |count| format!(", {count} instructions"));
    let mut text = format!(
        "\n{} on {} ({}), {}, {} ({}){instructions}\n",
        line.id, line.device, line.driver, kernel.form, kernel.kernel, kernel.role
    );
    if emit == Some(CodegenEmit::Ir) {
        if let Some(why) = &kernel.not_disassembled {
            text += &format!("  {why}\n");
        }
        for form in &kernel.forms {
            text += &format!("--- {}\n{}\n", form.name, form.text.trim_end());
        }
        return text;
    }
    if emit == Some(CodegenEmit::Order) {
        return text + &orders::text(kernel);
    }
    text + &code::kernel(kernel)
}

/// Rows as columns of their widest words.
fn columns(rows: &[Vec<String>]) -> String {
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
