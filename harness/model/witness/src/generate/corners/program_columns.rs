//! Builder of a program as columns of lines.

use std::fmt::Write as _;

use crate::generate::SplitMix64;

/// Placement of an agent: queue family, workgroup, subgroup.
pub type AgentPlacement = (usize, usize, usize);

#[derive(Clone, Debug, Default)]
pub struct ProgramColumn {
    pub head: String,
    pub placement: AgentPlacement,
    pub lines: Vec<String>,
    pub registers: usize,
    pub guard_count: usize,
}

impl ProgramColumn {
    pub fn push_line(&mut self, line: String) {
        self.lines.push(line);
    }

    pub fn new_register(&mut self) -> String {
        self.registers += 1;
        format!("r{}", self.registers - 1)
    }

    /// Skips the following lines unless the register has a value.
    pub fn guard_rest(&mut self, register: &str, value: usize) {
        self.push_line(format!("bne {register}, {value}, LC9{}", self.guard_count));
        self.guard_count += 1;
    }

    /// Emits the ends of the skipped parts.
    pub fn close_guards(&mut self) {
        for guard in 0..self.guard_count {
            self.push_line(format!("LC9{guard}:"));
        }
        self.guard_count = 0;
    }
}

/// A program under construction, in columns.
#[derive(Clone, Debug, Default)]
pub struct ProgramColumns {
    pub declarations: Vec<String>,
    pub columns: Vec<ProgramColumn>,
    pub filter: Option<String>,
    pub question: String,
}

impl ProgramColumns {
    /// Places `count` agents on the device, in common or in separate groups.
    pub fn add_agents(&mut self, random: &mut SplitMix64, count: usize) {
        for index in 0..count {
            let spot = match self.columns.last() {
                Some(last) if random.chance(25) => last.placement,
                _ => {
                    let family = usize::from(random.chance(12));
                    // Workgroups of different families are different ones.
                    (family, random.below(2) + 2 * family, random.below(2))
                }
            };
            self.add_column(index, spot);
        }
    }

    /// Places `count` agents in two workgroups, those of the first workgroup first.
    pub fn add_agents_in_groups(&mut self, random: &mut SplitMix64, count: usize) {
        let first = 1 + random.below(count - 1);
        let family = usize::from(random.chance(25));
        for index in 0..count {
            let group = usize::from(index >= first);
            let subgroup = usize::from(random.chance(30));
            self.add_column(index, (group * family, group, subgroup));
        }
    }

    fn add_column(&mut self, index: usize, spot: AgentPlacement) {
        let (family, workgroup, subgroup) = spot;
        let head = format!("P{index}@sg {subgroup}, wg {workgroup}, qf {family}");
        self.columns.push(ProgramColumn { head, placement: spot, ..ProgramColumn::default() });
    }

    /// Puts the columns into another order.
    pub fn shuffle_columns(&mut self, random: &mut SplitMix64) {
        for index in (1..self.columns.len()).rev() {
            self.columns.swap(index, random.below(index + 1));
        }
        for (index, column) in self.columns.iter_mut().enumerate() {
            let place = column.head.split_once('@').map_or("", |(_, place)| place);
            column.head = format!("P{index}@{place}");
        }
    }

    /// Returns the narrowest scope that includes both agents.
    pub fn narrowest_common_scope(&self, a: usize, b: usize) -> &'static str {
        let (here, there) = (self.columns[a].placement, self.columns[b].placement);
        if here == there {
            "sg"
        } else if (here.0, here.1) == (there.0, there.1) {
            "wg"
        } else if here.0 == there.0 {
            "qf"
        } else {
            "dv"
        }
    }

    /// Adds a line to a column.
    pub fn push_line(&mut self, column: usize, line: String) {
        self.columns[column].push_line(line);
    }

    pub fn render(&self, name: &str) -> String {
        let declared: String = self.declarations.iter().map(|declared| format!("{declared}; ")).collect();
        let heads: Vec<&str> = self.columns.iter().map(|column| column.head.as_str()).collect();
        let mut text = format!("VULKAN {name}\n{{ {declared}}}\n{} ;\n", heads.join(" | "));
        let rows = self.columns.iter().map(|column| column.lines.len()).max().unwrap_or(0);
        for row in 0..rows {
            let cell = |column: &super::program_columns::ProgramColumn| {
                column.lines.get(row).cloned().unwrap_or_default()
            };
            let cells: Vec<String> = self.columns.iter().map(cell).collect();
            let _ = writeln!(text, "{} ;", cells.join(" | "));
        }
        if let Some(filter) = &self.filter {
            let _ = writeln!(text, "filter ({filter})");
        }
        let _ = writeln!(text, "exists ({})", self.question);
        text
    }
}
