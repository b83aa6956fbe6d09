// The way to each section of the page.

function showSection(id, block) {
  const section = document.getElementById(id);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (section) section.scrollIntoView({ block, behavior: still ? "auto" : "smooth" });
}

function showMenu() {
  const links = [...document.querySelectorAll("main section[id]:not([hidden])")].map((section) => html("a", {
    href: `#${section.id}`,
    onclick: (event) => {
      event.preventDefault();
      change({ at: section.id });
      showSection(section.id, "start");
    },
  }, section.dataset.menu || section.querySelector("h2").textContent));
  find("#menu").replaceChildren(...links);
}
