//! The terminal, taken and given back.
//!
//! Whatever ends the program or stops it, the terminal is as it was before: at the end of a [`Screen`], in a panic before its
//! message is printed, and around a stop. A process that was stopped by force (`SIGSTOP`) could not do so; it takes the
//! terminal again when it goes on, whatever a shell has made of it meanwhile.

use std::io::{self, Stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::desk::Desk;
use super::view::{self, Look};

/// Whether the terminal is ours. A panic may happen anywhere, so this belongs to the process.
static TAKEN: AtomicBool = AtomicBool::new(false);

pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    look: Look,
}

impl Screen {
    pub fn take(look: Look) -> io::Result<Screen> {
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let mut screen = Screen { terminal, look };
        screen.take_again()?;
        Ok(screen)
    }

    /// After a stop.
    pub fn take_again(&mut self) -> io::Result<()> {
        TAKEN.store(true, Ordering::Relaxed);
        // What is remembered of the modes is from before the stop, and asking for raw ones twice does nothing.
        disable_raw_mode()?;
        enable_raw_mode()?;
        crossterm::execute!(io::stdout(), EnterAlternateScreen)?;
        // Everything is drawn anew after a resize, even to the same size. Clearing would do that too, but ask the terminal
        // where its cursor is, and the thread that reads keys would get the answer.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    pub fn draw(&mut self, desk: &Desk) -> io::Result<()> {
        self.terminal.draw(|frame| view::draw(frame, desk, self.look)).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back, once. If that fails there is nobody to tell.
pub fn give_back() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        let _ = disable_raw_mode();
        let _ = crossterm::execute!(io::stdout(), LeaveAlternateScreen, Show);
    }
}
