//! The desk, drawn: a title, the names of the columns, the rows of each GPU, what is not as it should be, and a line that says
//! which keys there are. In a small window the middle gives way, in a narrow one the less important columns.
//!
//! Colours only say good and bad, in the terminal's own green and red, which are readable on dark and on light; everything
//! else is bold, dim or reversed.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget as _};

use super::columns::{Column, Place, fitting, is_at_rest};
use super::desk::{Desk, Line, Mode};
use super::keys::HELP;
use super::short;
use daemon::scene::{Figures, GpuRows, Verdict};

/// How a desk is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub colours: bool,
    /// With what is only of use to somebody at a keyboard: keys, selection, curves.
    pub live: bool,
}

pub fn draw(frame: &mut Frame<'_>, desk: &Desk, look: Look) {
    let area = frame.area();
    paint(frame.buffer_mut(), area, desk, look);
}

/// How many rows show everything.
pub fn height(desk: &Desk) -> u16 {
    let sentences = desk.scene.as_ref().map_or(0, |scene| scene.sentences.len());
    let rows = 2 + desk.lines().len().max(1) + if sentences > 0 { sentences + 1 } else { 0 };
    u16::try_from(rows).unwrap_or(u16::MAX)
}

pub fn paint(buffer: &mut Buffer, area: Rect, desk: &Desk, look: Look) {
    let mut canvas = Canvas { buffer, area, look };
    let [top, rows, foot] = parts(area, look);
    canvas.title(top, desk);
    let columns = fitting(area.width, |column| is_wanted(column, desk, look));
    let heads = canvas.head(rows, desk, &columns);
    let sentences = desk.scene.as_ref().map_or(&[][..], |scene| &scene.sentences);
    let left = rows.height.saturating_sub(heads);
    let most = if look.live { left / 4 } else { left };
    let said = u16::try_from(sentences.len()).unwrap_or(u16::MAX);
    let said = if said == 0 { 0 } else { (said + u16::from(!look.live)).min(most) };
    let body = Rect { y: rows.y + heads, height: left - said, ..rows };
    canvas.body(body, desk, &columns);
    canvas.sentences(Rect { y: body.bottom(), height: said, ..rows }, sentences);
    if look.live {
        canvas.foot(foot, desk);
    }
    if desk.mode == Mode::Help {
        canvas.help();
    }
}

/// The title, what is between, and the last line, of which a low window has the first ones only.
fn parts(area: Rect, look: Look) -> [Rect; 3] {
    let top = area.height.min(1);
    let foot = u16::from(look.live && area.height > 2);
    let [top, rows, foot] = [top, area.height - top - foot, foot];
    let part = |y, height| Rect { y, height, ..area };
    [part(area.y, top), part(area.y + top, rows), part(area.y + top + rows, foot)]
}

/// There is nothing to say in some columns.
fn is_wanted(column: Column, desk: &Desk, look: Look) -> bool {
    let tenants = || desk.scene.iter().flat_map(|scene| &scene.gpus).flat_map(|gpu| &gpu.tenants);
    match column {
        Column::Curve => look.live,
        Column::Memory => tenants().any(|tenant| tenant.figures.memory.is_some()),
        // One user alone knows who that is.
        Column::User => tenants().zip(tenants().skip(1)).any(|(one, other)| one.user != other.user),
        _ => true,
    }
}

struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    look: Look,
}

impl Canvas<'_> {
    /// A text in a field, cut with a mark where it is too long.
    fn write(&mut self, field: Rect, text: &str, style: Style, right: bool) {
        let field = field.intersection(self.area);
        if field.is_empty() {
            return;
        }
        let room = usize::from(field.width);
        let width = Span::raw(text).width();
        let blank = if right { room.saturating_sub(width) } else { 0 };
        let x = field.x + u16::try_from(blank).unwrap_or(0);
        let (end, _) = self.buffer.set_stringn(x, field.y, text, room, style);
        if width > room {
            let last = field.right() - 1;
            // A wide character that did not fit leaves its place empty.
            self.buffer.set_stringn(last.min(end), field.y, "…", 1, style);
        }
    }

    fn colour(&self, colour: Color) -> Style {
        if self.look.colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn title(&mut self, field: Rect, desk: &Desk) {
        self.write(field, &title(desk, self.look), Style::new().add_modifier(Modifier::BOLD), false);
    }

    /// The names of the columns, if there is room for a row too. Gives how many lines that took.
    fn head(&mut self, rows: Rect, desk: &Desk, columns: &[Place]) -> u16 {
        if rows.height < 2 {
            return 0;
        }
        for place in columns {
            let style = Style::new().add_modifier(Modifier::UNDERLINED);
            let sorted = place.column == desk.order && self.look.live;
            let style = if sorted { style.add_modifier(Modifier::BOLD) } else { style };
            let field = Rect { x: rows.x + place.x, y: rows.y, width: place.width, height: 1 };
            let title = place.column.title();
            let title = if place.column == Column::Name { format!(" {title}") } else { title.to_owned() };
            self.write(field, &title, style, place.column.is_right_aligned());
        }
        1
    }

    fn body(&mut self, area: Rect, desk: &Desk, columns: &[Place]) {
        let lines = desk.lines();
        if lines.is_empty() {
            self.write(area, &nobody(desk), Style::new(), false);
            return;
        }
        let selected = desk.position().filter(|_| self.look.live);
        let room = usize::from(area.height);
        // The selected row is always among those that are shown.
        let first = selected.map_or(0, |selected| (selected + 1).saturating_sub(room));
        for (index, (line, y)) in lines[first..].iter().zip(area.y..area.bottom()).enumerate() {
            let field = Rect { y, height: 1, ..area };
            self.line(field, desk, columns, line, selected == Some(first + index));
        }
    }

    fn line(&mut self, field: Rect, desk: &Desk, columns: &[Place], line: &Line<'_>, selected: bool) {
        let (figures, name) = match line {
            Line::Gpu(gpu) => return self.gpu(field, gpu),
            Line::Tenant(_, tenant) => (&tenant.figures, tenant.name.clone()),
            Line::Process(_, _, process) => (&process.figures, format!("  {}", process.pid)),
        };
        for place in columns {
            let width = usize::from(place.width);
            let text = match (place.column, line) {
                (Column::Name, _) => format!("{}{name}", if selected { ">" } else { " " }),
                (Column::User, Line::Tenant(_, tenant)) => desk.users.short(tenant.user),
                (Column::Curve, Line::Tenant(gpu, tenant)) => {
                    desk.history.curve(&gpu.uuid, &tenant.number, width)
                }
                (Column::Processes, Line::Tenant(_, tenant)) => {
                    let pids: Vec<_> =
                        tenant.processes.iter().map(|process| process.pid.to_string()).collect();
                    pids.join(" ")
                }
                (Column::Processes, Line::Process(_, _, process)) => process.program.clone(),
                (column, _) => column.cell(figures, place.width),
            };
            let style = self.style(place.column, figures, desk);
            let at = Rect { x: field.x + place.x, width: place.width, ..field };
            self.write(at, &text, style, place.column.is_right_aligned());
        }
        if selected {
            self.buffer.set_style(field, Style::new().add_modifier(Modifier::REVERSED));
        }
    }

    fn style(&self, column: Column, figures: &Figures, desk: &Desk) -> Style {
        let verdict = figures.service.and_then(|service| service.verdict());
        match (column, verdict) {
            // What was before the daemon went is no more than a memory.
            _ if desk.lost => Style::new().add_modifier(Modifier::DIM),
            (Column::Objective, Some(Verdict::Kept)) => self.colour(Color::Green),
            (Column::Objective, Some(_)) => self.colour(Color::Red).add_modifier(Modifier::BOLD),
            (Column::Doing, _) if is_at_rest(figures) => Style::new().add_modifier(Modifier::DIM),
            _ => Style::new(),
        }
    }

    fn gpu(&mut self, field: Rect, gpu: &GpuRows) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let style = if gpu.degraded { self.colour(Color::Red).patch(bold) } else { bold };
        self.write(field, &headline(gpu), style, false);
    }

    fn sentences(&mut self, field: Rect, sentences: &[String]) {
        // On paper there is a blank line before them.
        let blank = u16::from(!self.look.live);
        let room = usize::from(field.height.saturating_sub(blank));
        // A single line is better spent on a sentence than on how many there are.
        let fit = if sentences.len() > room && room > 1 { room - 1 } else { room };
        let more = format!("… and {} more; `ebb status` has all", sentences.len() - fit.min(sentences.len()));
        let shown = sentences.iter().take(fit).map(String::as_str);
        let shown = shown.chain((sentences.len() > fit).then_some(more.as_str())).take(room);
        for (sentence, y) in shown.zip(field.y + blank..) {
            self.write(Rect { y, height: 1, ..field }, sentence, self.colour(Color::Red), false);
        }
    }

    /// A question, an answer, or which keys there are.
    fn foot(&mut self, field: Rect, desk: &Desk) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let (text, style) = match (&desk.mode, &desk.message) {
            (Mode::Filter, _) => (format!("filter: {}_   Enter: keep it  Esc: show all", desk.filter), bold),
            (Mode::Confirm(change), _) => (change.question(), bold),
            (_, Some(message)) => return self.answer(field, message, bold),
            _ => (
                "q quit  s sort  r reverse  / filter  p pause  Enter processes  ? help".to_owned(),
                Style::new().add_modifier(Modifier::DIM),
            ),
        };
        self.write(field, &text, style, false);
    }

    /// Why something was refused may take more than a line. It lies over what is above, until the next key.
    fn answer(&mut self, field: Rect, message: &str, style: Style) {
        let lines = wrapped(message, usize::from(field.width));
        let height =
            u16::try_from(lines.len()).unwrap_or(u16::MAX).min(self.area.height / 2).max(field.height);
        let area = Rect { y: field.bottom() - height, height, ..field };
        Clear.render(area, self.buffer);
        for (line, y) in lines.iter().zip(area.y..area.bottom()) {
            self.write(Rect { y, height: 1, ..area }, line, style, false);
        }
    }

    fn help(&mut self) {
        let lines: Vec<Text<'_>> =
            HELP.iter().map(|(keys, what)| Text::raw(format!("{keys:12}  {what}"))).collect();
        let width = lines.iter().map(Text::width).max().unwrap_or(0) + 4;
        let size = |length: usize| Constraint::Length(u16::try_from(length).unwrap_or(u16::MAX));
        let area = self.area.centered(size(width), size(lines.len() + 2));
        Clear.render(area, self.buffer);
        let block = Block::bordered().title(" keys ").padding(ratatui::widgets::Padding::horizontal(1));
        Paragraph::new(lines).block(block).render(area, self.buffer);
    }
}

/// A text in lines of a width, broken between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && Span::raw(line.as_str()).width() + 1 + Span::raw(word).width() > width {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines
}

fn title(desk: &Desk, look: Look) -> String {
    let mut parts = vec!["ebb top".to_owned()];
    match &desk.scene {
        _ if desk.lost => parts.push("no daemon; waiting".to_owned()),
        Some(scene) => {
            let (pid, scope, uptime) = &scene.daemon;
            parts.push(format!("{}, {}", count(scene.tenants(), "tenant"), count(scene.gpus.len(), "GPU")));
            parts.push(format!("daemon {pid} for the {scope}, up {}", short::time(*uptime)));
        }
        None => parts.push("asking the daemon".to_owned()),
    }
    if look.live {
        let reverse = if desk.reversed { " reversed" } else { "" };
        parts.insert(1, format!("by {}{reverse}", order(desk.order)));
    }
    if !desk.filter.is_empty() {
        parts.insert(1, format!("only `{}`", desk.filter));
    }
    parts.join(" · ")
}

/// What rows are ordered by, in a word.
fn order(column: Column) -> &'static str {
    match column {
        Column::Objective => "SLO",
        other => other.title(),
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn nobody(desk: &Desk) -> String {
    match &desk.scene {
        None => String::new(),
        Some(scene) if scene.tenants() == 0 => "no tenants; `ebb run -- COMMAND` makes one".to_owned(),
        Some(_) => format!("no name with `{}` in it", desk.filter),
    }
}

fn headline(gpu: &GpuRows) -> String {
    // The first of its five groups tells the GPUs of a machine apart.
    let uuid = gpu.uuid.get(..12).unwrap_or(&gpu.uuid);
    let mut parts = vec![format!("{uuid} {}", gpu.domain)];
    parts.extend(gpu.idle.map(|idle| format!("idle {}", short::percent(idle))));
    parts.extend(gpu.policy.clone());
    parts.extend(gpu.token.as_ref().map(|holder| match holder {
        Some(name) => format!("token {name}"),
        None => "token free".to_owned(),
    }));
    if gpu.degraded {
        parts.insert(1, "DEGRADED".to_owned());
    }
    parts.join(", ")
}
