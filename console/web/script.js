// The live view: what the server sends takes the place of what is on the page, element by element, so that the focus and an
// open part stay where they are. Times run by themselves in between.
"use strict";
(() => {
	const live = document.getElementById("live");
	const from = document.body.dataset.stream;
	const pause = document.getElementById("pause");
	const link = document.getElementById("link");
	if (!live || !from || !window.EventSource) return;

	let source = null;
	let paused = false;
	let heard = performance.now();
	let stopped = false; // as what is shown is not true any more
	let retry = 0;
	let late = 0;

	const text = (ms) => {
		const s = Math.floor(ms / 1000);
		const two = (n) => String(n).padStart(2, "0");
		if (s < 60) return `${s}s`;
		if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
		if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor(s / 60) % 60)}m`;
		return `${Math.floor(s / 86400)}d ${Math.floor(s / 3600) % 24}h`;
	};

	const run = () => {
		if (paused || stopped || !source) return;
		const passed = performance.now() - heard;
		const set = (e, ms) => {
			const t = text(ms);
			if (e.textContent !== t) e.textContent = t;
		};
		for (const e of live.querySelectorAll("[data-left]")) set(e, Math.max(0, e.dataset.left - passed));
		for (const e of live.querySelectorAll("[data-age]")) set(e, Number(e.dataset.age) + passed);
	};

	// same makes old like fresh.
	const same = (old, fresh) => {
		if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
			old.replaceWith(fresh);
			return;
		}
		if (old.nodeType !== Node.ELEMENT_NODE) {
			if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
			return;
		}
		for (const a of [...old.attributes]) if (a.name !== "open" && !fresh.hasAttribute(a.name)) old.removeAttribute(a.name);
		for (const a of fresh.attributes) if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
		children(old, fresh);
	};

	// children pairs elements by their id, where they have one, and by their place otherwise.
	const children = (old, fresh) => {
		const named = new Map();
		for (const c of old.children) if (c.id) named.set(c.id, c);
		let at = old.firstChild;
		for (const f of [...fresh.childNodes]) {
			const known = f.id ? named.get(f.id) : null;
			if (known) {
				named.delete(f.id);
				if (known === at) at = at.nextSibling;
				else old.insertBefore(known, at);
				same(known, f);
			} else if (at && !(at.id && named.has(at.id))) {
				const next = at.nextSibling;
				same(at, f);
				at = next;
			} else {
				old.insertBefore(f, at);
			}
		}
		while (at) {
			const next = at.nextSibling;
			at.remove();
			at = next;
		}
		for (const c of named.values()) if (c.parentNode === old && !fresh.contains(c)) c.remove();
	};

	const say = (state, words) => {
		clearTimeout(late);
		late = 0;
		link.dataset.state = state;
		if (link.textContent !== words) link.textContent = words;
	};

	// fresh says whether Redis has answered, in what was heard last.
	const fresh = () => {
		const stale = live.querySelector("[data-stale]");
		stopped = Boolean(stale);
		if (stale) say("stale", stale.dataset.stale);
		else say("live", "live");
	};

	const open = () => {
		if (source || paused || document.hidden) return;
		clearTimeout(retry);
		source = new EventSource(from);
		source.onmessage = (e) => {
			const part = document.createElement("div");
			part.innerHTML = e.data;
			heard = performance.now();
			children(live, part);
			fresh();
		};
		source.onerror = () => {
			// The server ends each stream after a while, and the browser comes again at once.
			late ||= setTimeout(() => {
				stopped = true;
				say("lost", "not connected, trying again");
			}, 3000);
			if (source && source.readyState === EventSource.CLOSED) {
				source = null;
				retry = setTimeout(open, 5000);
			}
		};
	};
	const close = () => {
		clearTimeout(retry);
		if (source) source.close();
		source = null;
	};

	pause.hidden = false;
	pause.addEventListener("click", () => {
		paused = !paused;
		pause.setAttribute("aria-pressed", String(paused));
		pause.textContent = paused ? "Go on" : "Pause";
		if (paused) {
			close();
			say("paused", "paused");
		} else {
			open();
		}
	});
	document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
	addEventListener("pagehide", close);
	addEventListener("pageshow", open);
	setInterval(run, 1000);
	open();
})();
