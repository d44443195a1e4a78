//! One frame and no more: as text, or for programs.

use daemon::report::Process;
use model::Nanos;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;
use serde_json::{Value, json};

use super::desk::Desk;
use super::view::{self, Look};
use daemon::scene::{Figures, GpuRows, Tenant, preempted};

/// A frame as lines, as long as they need to be.
pub fn text(desk: &Desk, width: u16) -> String {
    let area = Rect::new(0, 0, width, view::height(desk));
    let mut buffer = Buffer::empty(area);
    view::paint(&mut buffer, area, desk, Look { colours: false, live: false });
    lines(&buffer)
}

/// What stands in a buffer.
pub fn lines(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in buffer.content().chunks(usize::from(buffer.area.width.max(1))) {
        let mut line = String::new();
        // A wide character has the next cell too.
        let mut covered = 0;
        for cell in row {
            if covered == 0 {
                line.push_str(cell.symbol());
                covered = Span::raw(cell.symbol()).width();
            }
            covered = covered.saturating_sub(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The daemon's report with what is only known from two of them, and with its tenants as rows.
pub fn json(desk: &Desk) -> Value {
    let Some((report, scene)) = desk.report.as_ref().zip(desk.scene.as_ref()) else { return Value::Null };
    let mut whole = json!(report);
    whole["interval_ns"] = json!(scene.elapsed.map(|elapsed| elapsed.0));
    for (gpu, value) in report.gpus.iter().zip(items(&mut whole["gpus"])) {
        let rows = scene.gpus.iter().find(|rows| rows.uuid == gpu.uuid);
        add_to_gpu(value, rows, &gpu.processes);
    }
    whole
}

fn items(list: &mut Value) -> impl Iterator<Item = &mut Value> {
    list.as_array_mut().into_iter().flatten()
}

fn add_to_gpu(value: &mut Value, rows: Option<&GpuRows>, processes: &[Process]) {
    value["idle_permille"] = json!(rows.and_then(|rows| rows.idle).map(permille));
    value["degraded"] = json!(rows.is_some_and(|rows| rows.degraded));
    let tenants = rows.map_or(&[][..], |rows| &rows.tenants);
    value["tenants"] = tenants.iter().map(|row| tenant(row, processes)).collect();
    let members = || tenants.iter().flat_map(|tenant| &tenant.processes);
    for process in items(&mut value["processes"]) {
        let figures = members().find(|member| process["pid"] == json!(member.pid));
        process["rates"] = json!(figures.and_then(|member| rates(&member.figures)));
    }
}

fn tenant(tenant: &Tenant, processes: &[Process]) -> Value {
    let figures = &tenant.figures;
    let service = figures.service.unwrap_or_default();
    let of_it = |process: &&Process| process.tenant == tenant.number;
    let sum =
        |count: fn(&Process) -> u64| processes.iter().filter(of_it).map(count).fold(0, u64::saturating_add);
    let nanos = |span: Option<Nanos>| span.map(|span| span.0);
    json!({
        "tenant": tenant.number,
        "name": tenant.name,
        "class": figures.class,
        "lowered": figures.lowered,
        "state": figures.state.word(),
        "priority": figures.priority,
        "weight": figures.weight,
        "pids": tenant.processes.iter().map(|process| process.pid).collect::<Vec<_>>(),
        "rates": rates(figures),
        "gpu_ns": sum(|process| process.counters.gpu_ns),
        "submissions": sum(|process| process.counters.submissions),
        "preemptions": sum(|process| preempted(&process.counters)),
        "slo_p99_ns": nanos(service.objective),
        "slo": service.verdict().map(|verdict| verdict.word()),
        "p99_ns": nanos(service.p99),
        "slowdown_p99_permille": service.slowdown,
        "alone_samples": service.alone_samples,
        "rung": figures.stop.as_ref().map(|stop| &stop.rung),
        "stop_p99_ns": nanos(figures.stop.as_ref().and_then(|stop| stop.p99)),
        "wait_p99_ns": nanos(figures.wait_p99),
        "memory_used_bytes": figures.memory.map(|(used, _)| used),
        "memory_limit_bytes": figures.memory.and_then(|(_, limit)| limit),
    })
}

fn rates(figures: &Figures) -> Option<Value> {
    let rates = figures.rates?;
    Some(json!({
        "gpu_permille": permille(rates.gpu),
        "launches_per_second": rates.launches.round() as u64,
        "preemptions_per_second": rates.preemptions.round() as u64,
    }))
}

fn permille(part: f64) -> u64 {
    (part * 1e3).round() as u64
}
