//! Random mixtures of all features.

use super::{ALIAS, FLAGS, PAYLOAD, ProgramWriter};

impl ProgramWriter<'_> {
    /// Small threads of any instructions over few locations.
    pub(super) fn emit_mixture(&mut self) {
        let agents = 1 + self.random.below(3);
        for index in 0..agents {
            let near = index > 0 && self.random.chance(40);
            self.add_agent(near);
        }
        let names = if self.random.chance(60) { 2 } else { 1 };
        for agent in 0..agents {
            let length = 1 + self.random.below(if agents == 3 { 2 } else { 3 });
            for _ in 0..length {
                let other = self.random.below(agents);
                self.emit_any_instruction(agent, other, names);
            }
            if self.random.chance(8) {
                let label = self.new_label(agent);
                let value = self.random.below(3);
                self.program.columns[agent].lines.insert(0, format!("{label}:"));
                self.emit(agent, format!("beq r0, {value}, {label}"));
                self.has_loops = true;
            }
        }
        if agents > 1 && self.random.chance(20) {
            let from = self.random.below(agents);
            let to = (from + 1) % agents;
            self.program.system_sync.push(format!("ssw P{from} P{to}"));
        }
        self.close_guards();
    }

    fn emit_any_instruction(&mut self, agent: usize, other: usize, names: usize) {
        let name = match self.random.below(10) {
            0 => ALIAS,
            1..6 => PAYLOAD,
            _ => FLAGS + self.random.below(names) * usize::from(names > 1),
        };
        let (word, class) = self.names[name];
        let scope = self.pick_mutual_scope(agent, other);
        let register = format!("r{}", self.random.below(2));
        let value = match self.random.below(10) {
            0..7 => (1 + self.random.below(2)).to_string(),
            _ => format!("r{}", self.random.below(2)),
        };
        let order = self.random.pick(&["", "", "acq", "rel", "acq_rel", "acq_rel"]);
        let line = match self.random.below(100) {
            0..26 => match self.random.below(8) {
                0 => format!("ld.sc{class} {register}, {word}"),
                1 => format!("ld.nonpriv.sc{class} {register}, {word}"),
                2 => format!("ld.vis.{scope}.sc{class} {register}, {word}"),
                3 | 4 => {
                    let semantics = self.pick_semantics("acq", name, 50);
                    format!("ld.atom.acq.{scope}.sc{class}{semantics} {register}, {word}")
                }
                _ => format!("ld.atom.{scope}.sc{class} {register}, {word}"),
            },
            26..54 => match self.random.below(8) {
                0 => format!("st.sc{class} {word}, {value}"),
                1 => format!("st.nonpriv.sc{class} {word}, {value}"),
                2 => format!("st.av.{scope}.sc{class} {word}, {value}"),
                3 | 4 => {
                    let semantics = self.pick_semantics("rel", name, 50);
                    format!("st.atom.rel.{scope}.sc{class}{semantics} {word}, {value}")
                }
                _ => format!("st.atom.{scope}.sc{class} {word}, {value}"),
            },
            54..76 => {
                let modifiers = if order.is_empty() {
                    format!("{scope}.sc{class}")
                } else {
                    let semantics = self.pick_semantics(order, name, 50);
                    format!("{order}.{scope}.sc{class}{semantics}")
                };
                match self.random.below(6) {
                    0 | 1 => format!("rmw.atom.{modifiers} {register}, {word}, {value}"),
                    2 => format!("rmw.atom.{modifiers}.add {register}, {word}, 1"),
                    3 => format!("rmw.atom.{modifiers}.max {register}, {word}, {value}"),
                    4 => format!("rmw.atom.{modifiers}.cas {register}, {word}, 0, {value}"),
                    _ => format!("rmw.atom.{modifiers}.cas {register}, {word}, 1, {value}"),
                }
            }
            76..86 => {
                let order = self.random.pick(&["acq", "rel", "acq_rel"]);
                let semantics = self.pick_semantics(order, name, 50);
                format!("membar.{order}.{scope}{semantics}")
            }
            86..90 => "avdevice".to_owned(),
            90..94 => "visdevice".to_owned(),
            94..97 => {
                let other = self.random.below(2);
                format!("add {register}, r{other}, {}", self.random.below(2))
            }
            _ => {
                let label = self.new_label(agent);
                format!("{} r0, {}, {label}", self.random.pick(&["beq", "bne", "blt"]), self.random.below(3))
            }
        };
        self.emit(agent, line);
    }
}
