//! Threads of each corner case.

use crate::generate::{ProgramColumn, ProgramColumns, SplitMix64};

/// Returns a flag of semantics with a low probability.
fn pick_flag(random: &mut SplitMix64, percent: usize, flag: &'static str) -> &'static str {
    if random.chance(percent) { flag } else { "" }
}

impl ProgramColumns {
    /// Returns a scope: with `percent` probability the narrowest sufficient one, otherwise usually a wide
    /// one.
    fn pick_scope(&self, random: &mut SplitMix64, percent: usize, a: usize, b: usize) -> &'static str {
        if random.chance(percent) {
            self.narrowest_common_scope(a, b)
        } else {
            random.pick(&["sg", "wg", "qf", "dv", "dv", "dv"])
        }
    }

    /// A payload passed with flags. Every step synchronizes; availability and visibility are random.
    pub fn emit_links(&mut self, random: &mut SplitMix64) {
        let count = random.pick(&[2, 3, 3, 3, 3, 4]);
        self.add_agents_in_groups(random, count);
        self.declarations = vec!["buffer x = 0".to_owned()];
        let last = count - 1;
        let wide = |random: &mut SplitMix64, reach| if random.chance(80) { "dv" } else { reach };
        let scope = self.pick_scope(random, 70, 0, 1);
        // The payload becomes available by the semantics of a barrier, or by its own write.
        let semantic = random.chance(40);
        self.push_line(
            0,
            match (semantic, random.below(3)) {
                (true, _) => "st.nonpriv.sc0 x, 1".to_owned(),
                (false, 0) => format!("st.atom.{scope}.sc0 x, 1"),
                (false, _) => format!("st.av.{scope}.sc0 x, 1"),
            },
        );
        if semantic && random.chance(80) {
            self.push_line(0, format!("membar.rel.{scope}.semsc0.semav"));
        }
        // Number of read-modify-writes that continue the flag's release sequence, and the index of this one.
        let (mut flag, mut sent_value) = (0, 1);
        let available = pick_flag(random, if semantic { 30 } else { 10 }, ".semav");
        let first = wide(random, self.narrowest_common_scope(0, 1));
        self.declarations.push("buffer f0 = 0".to_owned());
        self.push_line(0, format!("st.atom.rel.{first}.sc0.semsc0{available} f0, 1"));
        for agent in 1..last {
            let register = self.columns[agent].new_register();
            let (here, there) = (
                self.narrowest_common_scope(agent - 1, agent),
                self.narrowest_common_scope(agent, agent + 1),
            );
            let (available, visible) = (pick_flag(random, 75, ".semav"), pick_flag(random, 70, ".semvis"));
            // An agent in the middle continues the release sequence of the flag with a read-modify-
            // write, or acquires it and releases another flag.
            if random.chance(40) {
                if random.chance(15) {
                    let scope = self.pick_scope(random, 30, agent, agent + 1);
                    self.push_line(agent, format!("membar.acq_rel.{scope}.semsc0.semav.semvis"));
                }
                let line = if random.chance(50) {
                    format!("rmw.atom.acq_rel.dv.sc0.semsc0{available}{visible}.add {register}, f{flag}, 1")
                } else {
                    let next = sent_value + 1;
                    format!("rmw.atom.acq_rel.dv.sc0.semsc0{available}{visible} {register}, f{flag}, {next}")
                };
                self.push_line(agent, line);
                self.columns[agent].guard_rest(&register, sent_value);
                if random.chance(15) {
                    let scope = self.pick_scope(random, 30, agent, agent + 1);
                    self.push_line(agent, format!("membar.acq_rel.{scope}.semsc0.semav.semvis"));
                }
                sent_value += 1;
            } else {
                let scope = wide(random, here);
                let acquired = if random.chance(50) { visible } else { "" };
                self.push_line(
                    agent,
                    format!("ld.atom.acq.{scope}.sc0.semsc0{acquired} {register}, f{flag}"),
                );
                self.columns[agent].guard_rest(&register, sent_value);
                if random.chance(75) {
                    let scope = self.pick_scope(random, 30, agent, agent + 1);
                    self.push_line(agent, format!("membar.acq_rel.{scope}.semsc0{available}{visible}"));
                }
                (flag, sent_value) = (flag + 1, 1);
                self.declarations.push(format!("buffer f{flag} = 0"));
                let (scope, released) = (wide(random, there), pick_flag(random, 30, ".semav"));
                self.push_line(agent, format!("st.atom.rel.{scope}.sc0.semsc0{released} f{flag}, 1"));
            }
            self.columns[agent].close_guards();
        }
        let register = self.columns[last].new_register();
        let from = wide(random, self.narrowest_common_scope(last - 1, last));
        // The last access makes the payload visible itself, or a barrier before it does.
        let has_own_visibility = random.chance(55);
        let visible = pick_flag(random, if has_own_visibility { 10 } else { 35 }, ".semvis");
        self.push_line(last, format!("ld.atom.acq.{from}.sc0.semsc0{visible} {register}, f{flag}"));
        self.columns[last].guard_rest(&register, sent_value);
        if random.chance(if has_own_visibility { 10 } else { 75 }) {
            let scope = self.pick_scope(random, 65, last, last - 1);
            self.push_line(last, format!("membar.acq.{scope}.semsc0.semvis"));
        }
        let scope = self.pick_scope(random, 65, last, last - 1);
        let value = self.columns[last].new_register();
        self.push_line(
            last,
            match random.below(10) {
                0..3 => "st.nonpriv.sc0 x, 2".to_owned(),
                _ if has_own_visibility => format!("ld.vis.{scope}.sc0 {value}, x"),
                _ => format!("ld.nonpriv.sc0 {value}, x"),
            },
        );
        self.columns[last].close_guards();
        self.question = "x == 1".to_owned();
    }

    /// A payload and a flag of two classes, transferred with barriers whose semantics include one, the other
    /// or both.
    pub fn emit_adjacent_barriers(&mut self, random: &mut SplitMix64) {
        let count = random.pick(&[2, 2, 2, 3]);
        self.add_agents(random, count);
        let kinds = [("buffer", 0), ("image", 2)];
        let (payload, flag) = (random.pick(&kinds), random.pick(&kinds));
        self.declarations = vec![format!("{} x = 0", payload.0)];
        let sides = [format!(".semsc{}", payload.1), format!(".semsc{}", flag.1)];
        let classes = |random: &mut SplitMix64| match random.below(20) {
            0..11 => ".semsc0.semsc2".to_owned(),
            11..15 => sides[0].clone(),
            15 => sides[1].clone(),
            16 => ".semsc1".to_owned(),
            _ => ".semsc0.semsc1.semsc2".to_owned(),
        };
        self.push_line(0, format!("st.nonpriv.sc{} x, 1", payload.1));
        for agent in 0..count {
            let register = self.columns[agent].new_register();
            if agent > 0 {
                let from = agent - 1;
                let class = classes(random);
                if random.chance(65) {
                    self.push_line(agent, format!("ld.atom.dv.sc{} {register}, f{from}", flag.1));
                    self.columns[agent].guard_rest(&register, 1);
                    let scope =
                        if random.chance(80) { "dv" } else { self.narrowest_common_scope(from, agent) };
                    self.push_line(agent, format!("membar.acq.{scope}{class}.semvis"));
                } else {
                    self.push_line(
                        agent,
                        format!("ld.atom.acq.dv.sc{}{class}.semvis {register}, f{from}", flag.1),
                    );
                    self.columns[agent].guard_rest(&register, 1);
                }
            }
            if agent + 1 == count {
                let line = match random.chance(70) {
                    true => format!("ld.nonpriv.sc{} r9, x", payload.1),
                    false => format!("st.nonpriv.sc{} x, 2", payload.1),
                };
                self.push_line(agent, line);
            } else {
                self.declarations.push(format!("{} f{agent} = 0", flag.0));
                let class = classes(random);
                if random.chance(65) {
                    let scope =
                        if random.chance(80) { "dv" } else { self.narrowest_common_scope(agent, agent + 1) };
                    self.push_line(agent, format!("membar.rel.{scope}{class}.semav"));
                    self.push_line(agent, format!("st.atom.dv.sc{} f{agent}, 1", flag.1));
                } else {
                    self.push_line(agent, format!("st.atom.rel.dv.sc{}{class}.semav f{agent}, 1", flag.1));
                }
            }
            self.columns[agent].close_guards();
        }
        self.question = "x == 1".to_owned();
    }

    /// A flag that is read by a compare-exchange which mostly fails.
    pub fn emit_failing_exchange(&mut self, random: &mut SplitMix64) {
        let count = random.pick(&[2, 2, 3]);
        self.add_agents(random, count);
        self.declarations = vec!["buffer x = 0".to_owned(), "buffer f = 0".to_owned()];
        let expected = random.pick(&[1, 2]);
        self.push_line(0, "st.nonpriv.sc0 x, 1");
        self.push_line(0, format!("st.atom.rel.dv.sc0.semsc0.semav f, {expected}"));
        for agent in 1..count {
            let register = self.columns[agent].new_register();
            let modifiers = match random.below(8) {
                0 => "dv.sc0.cas".to_owned(),
                1 => "rel.dv.sc0.semsc0.semav.cas".to_owned(),
                2 => "acq.dv.sc0.semsc0.semvis.cas".to_owned(),
                3 => "acq_rel.dv.sc0.semsc0.semav.semvis.cas".to_owned(),
                4 => "acq_rel.dv.sc0.semsc0.semav.semvis.cas.uneq_acq.semsc0".to_owned(),
                5 => "acq.dv.sc0.semsc0.semsc2.semvis.cas.uneq_acq.semsc2.semvis".to_owned(),
                order => {
                    let order = ["acq", "acq_rel"][order - 6];
                    let scope = if random.chance(70) { "dv" } else { self.narrowest_common_scope(0, agent) };
                    format!(
                        "{order}.{scope}.sc0.semsc0.semvis.cas.uneq_acq{}",
                        pick_flag(random, 50, ".semsc0.semvis")
                    )
                }
            };
            // Compares with a value other than the flag's new one, so that an exchange that reads
            // it fails.
            let compared = if random.chance(85) { random.pick(&[0, 3 - expected]) } else { expected };
            let written = random.pick(&[3, 3, expected]);
            self.push_line(agent, format!("rmw.atom.{modifiers} {register}, f, {compared}, {written}"));
            self.columns[agent].guard_rest(&register, expected);
            if random.chance(12) {
                self.push_line(agent, "membar.acq.dv.semsc0.semvis");
            }
            let line = match random.chance(if count == 3 { 90 } else { 70 }) {
                true => "ld.nonpriv.sc0 r9, x".to_owned(),
                false => "st.nonpriv.sc0 x, 2".to_owned(),
            };
            self.push_line(agent, line);
            self.columns[agent].close_guards();
        }
        self.question = "x == 1 /\\ f == 1".to_owned();
    }

    /// A loop that reads a flag and counts its iterations. Returns the number of iterations.
    pub fn emit_counting_loop(&mut self, random: &mut SplitMix64) -> u32 {
        self.add_agents(random, 2);
        // A loop that writes has an effect even if it does not count.
        let counts = random.chance(85);
        let turns = if counts { random.pick(&[1, 2, 2, 3]) } else { 2 };
        let (counter, seen) = random.pick(&[("r0", "r1"), ("r1", "r0")]);
        self.declarations = vec!["x = 0".to_owned(), "f = 0".to_owned()];
        if random.chance(50) {
            self.declarations.push(format!("P1:{counter} = 0"));
        }
        self.push_line(0, "st.nonpriv.sc0 x, 1");
        let writes = random.pick(&[1, 1, 2]);
        for value in 1..=writes {
            let line = match random.chance(60) {
                true => format!("st.atom.rel.dv.sc0.semsc0.semav f, {value}"),
                false => format!("st.atom.dv.sc0 f, {value}"),
            };
            self.push_line(0, line);
        }
        self.push_line(1, "LC00:");
        let load = match random.chance(60) {
            true => format!("ld.atom.acq.dv.sc0.semsc0.semvis {seen}, f"),
            false => format!("ld.atom.dv.sc0 {seen}, f"),
        };
        let step = random.pick(&[1, 1, 1, 2]);
        let mut body = vec![load];
        if counts {
            body.push(format!("add {counter}, {counter}, {step}"));
        }
        if counts && random.chance(20) {
            body.swap(0, 1);
        }
        if !counts || random.chance(10) {
            body.push(format!("rmw.atom.dv.sc0.add r2, f, {}", usize::from(!counts)));
        }
        if random.chance(60) {
            body.push(format!("beq {seen}, {writes}, LC01"));
        }
        self.columns[1].lines.extend(body);
        let limit = turns * step;
        let back = match random.below(10) {
            0..4 if counts => format!("bne {counter}, {limit}, LC00"),
            4..8 if counts => format!("blt {counter}, {limit}, LC00"),
            _ => format!("bne {seen}, {}, LC00", if counts { writes } else { turns }),
        };
        self.push_line(1, back);
        self.push_line(1, "LC01:");
        if random.chance(50) {
            self.columns[1].guard_rest(seen, writes);
            self.push_line(1, "ld.nonpriv.sc0 r3, x");
            self.columns[1].close_guards();
        }
        self.question = format!("P1:{seen} == 1 /\\ f == 1");
        turns as u32
    }

    /// Release and acquire through every agent, in any order of the columns.
    pub fn emit_relay(&mut self, random: &mut SplitMix64) {
        let count = random.pick(&[3, 3, 3, 4, 5]);
        self.add_agents(random, count);
        // With one flag for all hops, three agents are eight operations.
        let uses_one_flag = random.chance(65);
        self.declarations = vec!["buffer x = 0".to_owned()];
        let mut flags = Vec::new();
        for hop in 1..count {
            let name = if uses_one_flag { "f".to_owned() } else { format!("f{hop}") };
            if hop == 1 || !uses_one_flag {
                self.declarations.push(format!("buffer {name} = 0"));
            }
            flags.push((name, if uses_one_flag { hop } else { 1 }));
        }
        let slip = if random.chance(35) { random.below(2 * count) } else { usize::MAX };
        let mut step = 0;
        let mut is_right_choice = |random: &mut SplitMix64| {
            step += 1;
            // At most one step lacks its order.
            step != slip || random.chance(10)
        };
        for agent in 0..count {
            if agent == 0 {
                self.push_line(0, "st.nonpriv.sc0 x, 1");
            } else {
                let (flag, value) = flags[agent - 1].clone();
                let scope =
                    if random.chance(70) { "dv" } else { self.narrowest_common_scope(agent - 1, agent) };
                let visible = if agent + 1 == count { ".semvis" } else { "" };
                let line = match is_right_choice(random) {
                    true => format!("ld.atom.acq.{scope}.sc0.semsc0{visible} r0, {flag}"),
                    false => format!("ld.atom.{scope}.sc0 r0, {flag}"),
                };
                self.push_line(agent, line);
                self.columns[agent].guard_rest("r0", value);
            }
            if agent + 1 < count {
                let (flag, value) = flags[agent].clone();
                let scope =
                    if random.chance(70) { "dv" } else { self.narrowest_common_scope(agent, agent + 1) };
                let available = if agent == 0 { ".semav" } else { "" };
                let line = match is_right_choice(random) {
                    true => format!("st.atom.rel.{scope}.sc0.semsc0{available} {flag}, {value}"),
                    false => format!("st.atom.{scope}.sc0 {flag}, {value}"),
                };
                self.push_line(agent, line);
            } else if random.chance(70) {
                self.push_line(agent, "ld.nonpriv.sc0 r1, x");
            } else {
                self.push_line(agent, "st.nonpriv.sc0 x, 2");
            }
            self.columns[agent].close_guards();
        }
        self.shuffle_columns(random);
        let reader =
            self.columns.iter().position(|column| column.lines.iter().any(|line| line.contains("r0")));
        self.question = format!("P{}:r0 == 1", reader.unwrap_or(0));
    }

    /// Each thread computes the value that the next one reads from the value that it has read.
    pub fn emit_value_cycle(&mut self, random: &mut SplitMix64) {
        let count = random.pick(&[2, 2, 2, 3]);
        self.add_agents(random, count);
        let names = ["x", "y", "z"];
        self.declarations = names[..count].iter().map(|name| format!("{name} = 0")).collect();
        let race = random.chance(25);
        for agent in 0..count {
            let (read, written) = (names[agent], names[(agent + 1) % count]);
            self.push_line(agent, format!("ld.atom.dv.sc0 r0, {read}"));
            let value = match random.below(10) {
                0..4 => "r0".to_owned(),
                4 | 5 => {
                    self.push_line(agent, format!("add r1, r0, {}", 1 + random.below(2)));
                    "r1".to_owned()
                }
                6 => {
                    // A dependency of syntax only: the value is always 1.
                    self.push_line(agent, "xor r1, r0, r0");
                    self.push_line(agent, "add r1, r1, 1");
                    "r1".to_owned()
                }
                7 | 8 => {
                    self.columns[agent].guard_rest("r0", 1 + usize::from(random.chance(30)));
                    random.pick(&["1", "1", "2", "r0"]).to_owned()
                }
                _ => "1".to_owned(),
            };
            self.push_line(agent, format!("st.atom.dv.sc0 {written}, {value}"));
            if race && agent < 2 {
                self.columns[agent].guard_rest("r0", 1);
                self.push_line(agent, format!("st.nonpriv.sc0 p, {}", agent + 1));
            }
            self.columns[agent].close_guards();
        }
        self.question = "P0:r0 == 1 /\\ P1:r0 == 1".to_owned();
    }

    /// Accesses of the whole and of parts of one location, with a flag between them or without.
    pub fn emit_size_mix(&mut self, random: &mut SplitMix64) {
        let count = random.pick(&[1, 2, 2, 2, 2, 3]);
        self.add_agents(random, count);
        let long = random.chance(50);
        // Types from wide to narrow, with their bytes.
        let types: &[(&str, usize)] =
            if long { &[("u64", 8), ("u32", 4), ("u16", 2)] } else { &[("u32", 4), ("u16", 2), ("u8", 1)] };
        let values: &[&str] =
            if long { &["1", "0x100000001", "0x200000002"] } else { &["1", "0x10001", "0x2020202"] };
        self.declarations =
            vec![format!("buffer {} x = {}", types[0].0, random.pick(&["0", "0", "0x3030303"]))];
        let alias = random.chance(20);
        if alias {
            self.declarations.push(format!("buffer {} a aliases x", random.pick(types).0));
        }
        let flag = count > 1 && random.chance(65);
        let mut remaining = 5;
        for agent in 0..count {
            if flag && agent > 0 {
                let line = match random.chance(85) {
                    true => "ld.atom.acq.dv.sc0.semsc0.semvis r0, f",
                    false => "ld.atom.dv.sc0 r0, f",
                };
                self.push_line(agent, line.to_owned());
                self.columns[agent].guard_rest("r0", 1);
            }
            self.columns[agent].registers = 1;
            for _ in 0..1 + random.below(3) {
                if remaining > 0 {
                    remaining -= 1;
                    self.emit_part_access(random, agent, types, values, alias);
                }
            }
            if flag && agent == 0 {
                self.push_line(0, "st.atom.rel.dv.sc0.semsc0.semav f, 1");
            }
            self.columns[agent].close_guards();
        }
        if flag {
            self.declarations.push("buffer f = 0".to_owned());
        }
        self.question = random.pick(&["x == 1", "x == 1", "true"]).to_owned();
    }

    fn emit_part_access(
        &mut self,
        random: &mut SplitMix64,
        agent: usize,
        types: &[(&str, usize)],
        values: &[&str],
        alias: bool,
    ) {
        if alias && random.chance(30) {
            let register = self.columns[agent].new_register();
            let line = match random.chance(50) {
                true => format!("ld.nonpriv.sc0 {register}, a"),
                false => "st.nonpriv.sc0 a, 2".to_owned(),
            };
            return self.push_line(agent, line);
        }
        let (ty, bytes) = types[random.pick(&[0, 0, 0, 1, 1, 2])];
        let offset = bytes * random.below(types[0].1 / bytes);
        let place = if offset > 0 { format!("x+{offset}") } else { "x".to_owned() };
        let value = if bytes == types[0].1 { random.pick(values) } else { random.pick(&["1", "2"]) };
        let register = self.columns[agent].new_register();
        let atomic = bytes >= 4 && random.chance(45);
        let line = match (random.below(10), atomic) {
            (0..4, false) => format!("st.nonpriv.sc0.{ty} {place}, {value}"),
            (4, false) => format!("st.av.dv.sc0.{ty} {place}, {value}"),
            (5, false) => format!("ld.vis.dv.sc0.{ty} {register}, {place}"),
            (_, false) => format!("ld.nonpriv.sc0.{ty} {register}, {place}"),
            (0..4, true) => format!("st.atom.dv.sc0.{ty} {place}, {value}"),
            (4, true) => format!("rmw.atom.dv.sc0.add.{ty} {register}, {place}, {value}"),
            (5, true) => {
                format!("rmw.atom.acq_rel.dv.sc0.semsc0.semav.semvis.{ty} {register}, {place}, {value}")
            }
            (_, true) => format!("ld.atom.dv.sc0.{ty} {register}, {place}"),
        };
        self.push_line(agent, line);
    }

    /// A filter checks the received value instead of branches.
    pub fn add_filter(&mut self, random: &mut SplitMix64) {
        let mut seen = Vec::new();
        for (agent, column) in self.columns.iter_mut().enumerate() {
            for line in std::mem::take(&mut column.lines) {
                // A branch that skips unless a register holds a value becomes a condition of the
                // filter.
                let Some(guard) = line.strip_prefix("bne ") else {
                    if !line.ends_with(':') {
                        column.lines.push(line);
                    }
                    continue;
                };
                if let [register, value, _] = *guard.split(", ").collect::<Vec<_>>()
                    && random.chance(92)
                {
                    seen.push(format!("P{agent}:{register} == {value}"));
                }
            }
        }
        if random.chance(10) {
            seen.push("x != 0".to_owned());
        }
        self.filter = Some(if seen.is_empty() { "true".to_owned() } else { seen.join(" /\\ ") });
    }

    /// Submissions, and a host that writes before and reads after them, with or without flushes and
    /// invalidations.
    pub fn emit_host(&mut self, random: &mut SplitMix64) {
        let count = random.pick(&[1, 2, 2]);
        self.add_agents(random, count);
        let is_noncoherent = random.chance(55);
        let property = if is_noncoherent { "host, noncoherent" } else { "host" };
        self.declarations = vec![format!("buffer x [{property}] = 0"), "buffer y [host] = 0".to_owned()];
        self.columns.push(ProgramColumn::default());
        for agent in 0..count {
            if random.chance(25) {
                let masks = ["avdevice.host_write", "avdevice.host_write.shader_write", "avdevice"];
                self.push_line(agent, random.pick(&masks));
                self.push_line(agent, random.pick(&["visdevice", "visdevice.shader_read"]));
            }
            for _ in 0..random.pick(&[1, 1, 2]) {
                self.emit_mapped_access(random, agent, count + 1);
            }
            if random.chance(75) {
                let masks =
                    ["avdevice", "avdevice.shader_write", "avdevice.shader_read", "avdevice.memory_write"];
                self.push_line(agent, random.pick(&masks));
                let masks =
                    ["visdevice.host_read", "visdevice.host_read", "visdevice.host_write", "visdevice"];
                self.push_line(agent, random.pick(&masks));
            }
        }
        for agent in 0..count {
            if random.chance(55) {
                self.emit_mapped_access(random, count, count + 1);
            }
            if is_noncoherent && random.chance(75) {
                self.push_line(count, random.pick(&["flush", "flush x", "flush x", "flush y"]));
            }
            if random.chance(92) {
                self.push_line(count, format!("submit P{agent}"));
            }
            if random.chance(85) {
                self.push_line(count, format!("wait P{agent}"));
            }
            if is_noncoherent && random.chance(70) {
                self.push_line(
                    count,
                    random.pick(&["invalidate", "invalidate x", "invalidate y"]).to_owned(),
                );
            }
        }
        if random.chance(80) {
            self.emit_mapped_access(random, count, count + 1);
        }
        self.question = random.pick(&["x == 1", "x == 1 /\\ y == 1", "true"]).to_owned();
    }

    /// A plain access of memory that hosts see.
    fn emit_mapped_access(&mut self, random: &mut SplitMix64, agent: usize, agents: usize) {
        let name = random.pick(&["x", "x", "x", "y"]);
        let register = self.columns[agent].new_register();
        let private = agent + 1 == agents || random.chance(70);
        let modifiers = if private { "" } else { ".nonpriv" };
        let line = match random.chance(50) {
            true => format!("ld{modifiers}.sc0 {register}, {name}"),
            false => format!("st{modifiers}.sc0 {name}, {}", agent + 1),
        };
        self.push_line(agent, line);
    }
}
