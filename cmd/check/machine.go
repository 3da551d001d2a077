package check

import (
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// A machine is a rank's source of facts about its host. thisMachine is the real one;
// tests have another, and so has a container that sees the host's files elsewhere.
type machine struct {
	FS        fs.FS                               // the root: proc and sys lie in it
	Now       func() time.Time                    // the host's clock
	Shm       func() (size, free uint64, ok bool) // of /dev/shm, in bytes
	Limit     func(name string) (uint64, bool)    // hard limits: "nofile", "memlock", "nproc"
	Addresses func() ([]address, error)           // that other hosts may reach
	Idle      func() map[string]string            // interfaces without such an address, and why
}

// An address is an address of a network interface.
type address struct {
	Interface string
	Net       net.IPNet // the address with its mask
	MTU       int       // 0 if it is not known
	MAC       string    // of the interface, empty if it has none
}

// thisMachine is the machine that this process runs on; its proc and sys lie in root.
func thisMachine(root string) *machine {
	return &machine{FS: os.DirFS(root), Now: time.Now, Shm: shmSize, Limit: hardLimit, Addresses: addresses,
		Idle: idleInterfaces}
}

// addresses are the global addresses of interfaces that are up, or loopback's if there are no
// others.
func addresses() ([]address, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var wide, near []address
	for _, f := range ifs {
		list, err := f.Addrs()
		if err != nil || f.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range list {
			n, ok := a.(*net.IPNet)
			switch {
			case !ok || n.IP.IsLinkLocalUnicast():
			case n.IP.IsLoopback():
				near = append(near, address{f.Name, *n, f.MTU, f.HardwareAddr.String()})
			case virtual(f.Name):
			default:
				wide = append(wide, address{f.Name, *n, f.MTU, f.HardwareAddr.String()})
			}
		}
	}
	if len(wide) == 0 {
		return near[:min(len(near), 1)], nil
	}
	return wide, nil
}

// idleInterfaces are the interfaces that no other host reaches, of which addresses has none, and why.
func idleInterfaces() map[string]string {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil
	}
	idle := map[string]string{}
	for _, f := range ifs {
		switch {
		case f.Flags&net.FlagLoopback != 0 || virtual(f.Name):
		case f.Flags&net.FlagUp == 0:
			idle[f.Name] = "it is down"
		case f.Flags&net.FlagRunning == 0:
			idle[f.Name] = "it is up and has no carrier"
		default:
			idle[f.Name] = "it is up and has no address"
		}
	}
	if list, err := addresses(); err == nil {
		for _, a := range list {
			delete(idle, a.Interface)
		}
	}
	return idle
}

// virtual says whether an interface leads to containers or guests of its host alone.
func virtual(name string) bool {
	for _, p := range []string{"docker", "virbr", "veth", "cni", "flannel", "cali", "br-"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// speed is the speed that an interface's hardware is set to, in GB/s; 0 if it is unknown, or if there is no hardware,
// as for loopback, veth and bridges, whose figures mean nothing.
func (m *machine) speed(name string) float64 {
	dir := "sys/class/net/" + name
	if mbps, ok := m.number(dir + "/speed"); ok && mbps > 0 && m.exists(dir+"/device") {
		return mbps / 8000
	}
	return 0
}

// text is a file's content without white space around it, "" if it cannot be read.
func (m *machine) text(file string) string {
	b, err := fs.ReadFile(m.FS, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number is the number that a file begins with.
func (m *machine) number(file string) (float64, bool) {
	word, _, _ := strings.Cut(m.text(file), " ")
	v, err := strconv.ParseFloat(word, 64)
	return v, err == nil
}

// list are the names in a folder, none if it is not there.
func (m *machine) list(dir string) []string {
	entries, err := fs.ReadDir(m.FS, strings.TrimSuffix(dir, "/"))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (m *machine) exists(file string) bool {
	_, err := fs.Stat(m.FS, file)
	return err == nil
}
